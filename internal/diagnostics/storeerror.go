package diagnostics

// StoreError is an error of a store of bundles that a condition reports.
type StoreError struct {
	// Message says what has failed, and the remedy, without a full stop. It contains no secret.
	Message string
	// Err is the cause.
	Err error
}

func (e *StoreError) Error() string { return e.Message }

func (e *StoreError) Unwrap() error { return e.Err }
