// Package recipe reads recipes and runs them. A recipe is a folder with recipe.yaml and one program
// for each verb, in any language: together they create, observe, stop, start and destroy clusters
// with a tool of the author's choice.
//
// The contract has the shape of openshift-install's. `prepare` names what will be created before
// anything exists, and `destroy` needs nothing but that name: whatever is killed in between, nothing
// is lost.
package recipe
