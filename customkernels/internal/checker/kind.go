package checker

// Kind is the kind of a finding.
type Kind uint32

// The kinds of findings, in the order of worker/protocol.h.
const (
	Race               Kind = iota // two unordered accesses to one element
	Fence                          // a barrier whose flags omit the memory of two accesses
	DivergentBarrier               // threads of a threadgroup at different barriers, or a thread that skips a barrier
	ShuffleInactive                // a shuffle from an inactive lane
	DivergentMatrix                // a matrix operation with inactive lanes
	OutOfBounds                    // an access or an index out of bounds
	UninitializedRead              // a read of unwritten memory, or a value computed from an uninitialized variable
	Deadlock                       // a loop that waits for another thread
	Limit                          // more threadgroup memory than a GPU has
	Crash                          // a signal, such as a stack overflow or a division by zero
	Timeout                        // the launch did not end in time
	Lockstep                       // two accesses, ordered only if the lanes of a simdgroup run in lockstep
	SameValueWrite                 // two unordered writes of the same value
	BarrierAfterExit               // a barrier after a thread has returned
	DivergentReduction             // a SIMD reduction with inactive lanes
	NeverRead                      // a threadgroup value that no thread reads
	Misaligned                     // an access through a pointer that is not aligned to its type
	Shift                          // a shift by the number of bits or more
	UnwrittenOutput                // output elements that no thread writes
	DroppedElement                 // an element that a tree reduction over an odd width omits
	OutOfOwn                       // an access outside of a thread's own variables
	Overflow                       // signed arithmetic that overflows
	WriteAfterRead                 // a read and a later write, with a barrier whose flags omit their memory
	TextureBounds                  // an access outside of a texture, whose result Metal defines
	WriteToInput                   // a write to a const or constant buffer
	DivergentArgument              // a lane, delta or mask that must be equal in all lanes
	numKinds
)

// divergent reports whether k is a kind about a call in divergent code.
func (k Kind) divergent() bool {
	switch k {
	case DivergentBarrier, ShuffleInactive, DivergentMatrix, DivergentReduction:
		return true
	}
	return false
}

// inWatched reports whether a watched program has findings of kind k.
func (k Kind) inWatched() bool {
	return k.divergent() || k == DivergentArgument || k == OutOfOwn || k == Overflow
}
