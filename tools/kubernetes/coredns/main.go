// Command coredns is CoreDNS with only the plugins that the Corefile of recipe kubernetes-processes
// uses. All plugins together take three times the disk space.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

// The order of the directives is that in which plugins handle a query.
func init() { dnsserver.Directives = []string{"bind", "ready", "errors", "cache", "kubernetes"} }

func main() { coremain.Run() }
