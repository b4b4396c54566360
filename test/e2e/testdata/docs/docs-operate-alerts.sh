### HotspareClaimsWaiting
papers
