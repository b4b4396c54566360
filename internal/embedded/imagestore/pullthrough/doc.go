// Package pullthrough serves the images of other registries to a local cluster, and keeps them for all
// local clusters of this computer.
//
//	DIR/                        a folder of package blobcache: the content
//	DIR/key                     a random key, without which identities cannot be computed
//	DIR/registries/REGISTRY/HEX     the registry has served this content to this computer; the file
//	                            contains its size
//	DIR/repositories/REGISTRY/REPOSITORY/_contents/HEX    the registry has said that the repository has
//	                            this content
//	DIR/repositories/REGISTRY/REPOSITORY/_tags/TAG        what the tag was, and when that was checked
//	DIR/repositories/REGISTRY/REPOSITORY/_access/IDENTITY    when the registry has last given these
//	                            credentials access to the repository
//	DIR/tmp/                    records that are being written
//
// # Access
//
// A cluster gets what the registry would give it with the cluster's own pull secret, or without
// credentials, and nothing else. Content is served from the folder only if all of these are true:
//
//   - The registry accepted these credentials for the repository within the last minute. Otherwise it
//     is asked, without content. Another cluster with the same credentials may have asked.
//   - The registry said that the repository has this content: a manifest cannot make the content of
//     another repository available by naming it.
//   - The same registry served the content to this computer: a registry that claims to have the content
//     of another registry must prove it by serving it.
//
// While a registry does not answer, or limits the rate of requests, content is served to credentials
// that it accepted within the last 30 days.
package pullthrough
