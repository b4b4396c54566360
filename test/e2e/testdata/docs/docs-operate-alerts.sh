### HotspareClaimsWait
papers
