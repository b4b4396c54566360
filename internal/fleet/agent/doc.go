// Package agent is the program that runs on a data plane: it creates the instances that the hub
// lists in the agent's DataPlaneAgent, and reports the actual state. It watches both sides. Package
// plan decides what to do.
package agent
