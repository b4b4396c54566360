package machinepool

// SpreadReplicas distributes total over n places. The shares differ by at most one, and the first
// places get the larger shares, as in Hive.
func SpreadReplicas(total int64, n int) []int64 {
	if n <= 0 {
		return nil
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = total / int64(n)
		if int64(i) < total%int64(n) {
			out[i]++
		}
	}
	return out
}

// SpreadRange distributes the autoscaling limits over n MachineSets. The maximum of each is at
// least its minimum.
func SpreadRange(r Range, n int) []Range {
	low, high := SpreadReplicas(r.Min, n), SpreadReplicas(r.Max, n)
	out := make([]Range, len(low))
	for i := range out {
		out[i] = Range{Min: low[i], Max: max(low[i], high[i])}
	}
	return out
}
