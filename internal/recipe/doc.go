// Package recipe reads recipes and runs their programs.
//
// A recipe is a folder with recipe.yaml and one program for each verb. The programs are written in
// any language and create, observe, stop, start and destroy clusters with a tool of the author's
// choice.
//
// The contract has the shape of openshift-install's: prepare returns the infraID before create
// creates anything, and destroy needs only the infraID. Therefore a cluster can always be destroyed,
// even if hotspare or a program was killed.
package recipe
