package machinepool

// SpreadReplicas divides total over n places: none has more than one more than another, and
// the first have the more, as Hive does it.
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

// SpreadRange divides the bounds of autoscaling over n MachineSets. The upper bound of
// a set is at least its lower.
func SpreadRange(r Range, n int) []Range {
	low, high := SpreadReplicas(r.Min, n), SpreadReplicas(r.Max, n)
	out := make([]Range, len(low))
	for i := range out {
		out[i] = Range{Min: low[i], Max: max(low[i], high[i])}
	}
	return out
}
