// Package chart tests what the chart of hotspare-manager renders for values that are not the defaults. config/manager
// has what it renders for the defaults.
package chart
