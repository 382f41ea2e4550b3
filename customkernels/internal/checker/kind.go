package checker

// Kind is the kind of a finding.
type Kind uint32

// The kinds of findings, in the order of worker/protocol.h.
const (
	Race Kind = iota
	Fence
	DivergentBarrier
	ShuffleInactive
	DivergentMatrix
	OutOfBounds
	UninitializedRead
	Deadlock
	Limit
	Crash
	Timeout
	Lockstep
	SameValueWrite
	BarrierAfterExit
	DivergentReduction
	NeverRead
	Misaligned
	Shift
	UnwrittenOutput
	DroppedElement
)
