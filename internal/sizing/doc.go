// Package sizing decides how many clusters of a pool run without a claim, and how many exist.
//
// Decide is one pure function from a Snapshot to a Plan. What it knows about the demand is in a
// Learned, which AddClaim and Advance keep up to date and which is a value that can be stored.
//
// The method has three parts (ADR 0029):
//
//   - A forecast: the rate of claims is a weighted sum of what this hour of the week usually has and
//     of what the last hour had. The weights are learned by expectation maximization.
//   - A newsvendor: the next running cluster goes to the moments in which it saves the most waits for
//     each hour that it is idle. One price, in claims for each idle hour, determines all counts.
//   - A conformal price: for each past claim it is known at which price a cluster would have run for
//     it. The price is the quantile of these scores that the objective asks for. So the objective is
//     met even where the forecast is wrong; a better forecast only makes it cheaper.
package sizing
