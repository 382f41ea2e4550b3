package sanitizer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config sets the thoroughness of Sanitize. The zero value is useful.
type Config struct {
	// Schedules is the number of orders of threads and threadgroups to run: in order,
	// reversed, and from the third on shuffled. 0 stands for 3.
	Schedules int
	// Seed decides the shuffled orders: the same seed gives the same orders.
	Seed uint64
	// Timeout limits the time of all schedules together; 0 stands for a minute.
	Timeout time.Duration
}

// FindingKind is a kind of defect.
type FindingKind string

// The kinds of findings. The first are errors: on some GPU, or in some order of
// threads, the kernel is wrong. From FindingLockstep on they are findings about
// portability: the kernel is right on today's GPUs, and Metal does not promise that.
const (
	FindingRace              FindingKind = "race"               // two threads at one element, nothing between
	FindingFence             FindingKind = "fence"              // a barrier between, whose flags leave the memory out
	FindingDivergentBarrier  FindingKind = "divergent-barrier"  // threads at different barriers, or one passed one by
	FindingShuffleInactive   FindingKind = "shuffle-inactive"   // a value from a lane that takes no part
	FindingDivergentMatrix   FindingKind = "divergent-matrix"   // a matrix operation without some lanes
	FindingOutOfBounds       FindingKind = "out-of-bounds"      // an access outside of every buffer and variable
	FindingMisaligned        FindingKind = "misaligned"         // a pointer where no value of its type may lie
	FindingUninitializedRead FindingKind = "uninitialized-read" // a value that nobody has written
	FindingUnwrittenOutput   FindingKind = "unwritten-output"   // an output with elements that no thread writes
	FindingDroppedElement    FindingKind = "dropped-element"    // an odd element that a tree reduction leaves out
	FindingDeadlock          FindingKind = "deadlock"           // a thread that waits for another by looking
	FindingLimit             FindingKind = "limit"              // more threads or memory than a GPU has
	FindingCrash             FindingKind = "crash"              // a fault: a division by zero, a stack that is full
	FindingTimeout           FindingKind = "timeout"            // the launch did not end in time
	FindingAddressSpace      FindingKind = "address-space"      // memory taken for that of another space
	FindingAmbiguous         FindingKind = "ambiguous-call"     // a function of Metal's with arguments of two types

	FindingLockstep           FindingKind = "lockstep"            // right if the lanes of a simdgroup step together
	FindingSameValueWrite     FindingKind = "same-value-write"    // several threads write one value at once
	FindingBarrierAfterExit   FindingKind = "barrier-after-exit"  // a barrier after some threads have returned
	FindingDivergentReduction FindingKind = "divergent-reduction" // a reduction over some of the lanes
	FindingNeverRead          FindingKind = "never-read"          // a threadgroup value that nobody reads
	FindingOrderDependent     FindingKind = "order-dependent"     // other bits in another order of threads, with no access to blame
	FindingShift              FindingKind = "shift"               // a number shifted by as many bits as it has, or more
)

// kinds holds every kind with its description, in the order of the constants.
var kinds = []struct {
	kind        FindingKind
	description string
}{
	{FindingRace, "Two threads access one element without order, and at least one of them writes."},
	{FindingFence, "The flags of the barrier between two accesses leave their memory out."},
	{FindingDivergentBarrier, "Threads of a group wait at different barriers, or some of them pass a barrier by."},
	{FindingShuffleInactive, "A thread takes the value of a lane that takes no part in the call."},
	{FindingDivergentMatrix, "A matrix operation lacks lanes of its simdgroup."},
	{FindingOutOfBounds, "An access lies outside of every buffer and variable."},
	{FindingMisaligned, "A pointer is not aligned to its type."},
	{FindingUninitializedRead, "A thread reads a value that no thread has written."},
	{FindingUnwrittenOutput, "An output has elements that no thread writes."},
	{FindingDroppedElement, "A tree reduction leaves an odd element out."},
	{FindingDeadlock, "A thread waits for another in a loop."},
	{FindingLimit, "The launch exceeds a limit of GPUs."},
	{FindingCrash, "The kernel crashed."},
	{FindingTimeout, "The launch did not end in time."},
	{FindingAddressSpace, "Memory of one address space is used as that of another."},
	{FindingAmbiguous, "A call of a Metal function is ambiguous."},
	{FindingLockstep, "The order of two accesses depends on lanes that step together."},
	{FindingSameValueWrite, "Several threads write the same value to one element without order."},
	{FindingBarrierAfterExit, "Threads wait at a barrier after others have returned."},
	{FindingDivergentReduction, "A SIMD reduction lacks lanes."},
	{FindingNeverRead, "No thread reads a value of threadgroup memory."},
	{FindingOrderDependent, "The outputs depend on the order of threads."},
	{FindingShift, "A number is shifted by as many bits as it has, or more."},
}

// FindingKinds lists every kind, errors first.
func FindingKinds() []FindingKind {
	list := make([]FindingKind, len(kinds))
	for i, k := range kinds {
		list[i] = k.kind
	}
	return list
}

// Description returns a sentence about findings of the kind.
func (k FindingKind) Description() string {
	for _, known := range kinds {
		if known.kind == k {
			return known.description
		}
	}
	return ""
}

// Severity tells errors from findings about portability.
type Severity string

// The severities.
const (
	SeverityError       Severity = "error"
	SeverityPortability Severity = "portability"
)

// Severity returns the severity of findings of the kind.
func (k FindingKind) Severity() Severity {
	switch k {
	case FindingLockstep, FindingSameValueWrite, FindingBarrierAfterExit, FindingDivergentReduction, FindingNeverRead,
		FindingOrderDependent, FindingShift:
		return SeverityPortability
	}
	return SeverityError
}

// A Site is a place in a shader file.
type Site struct {
	File     string
	Line     int // from 1; 0 if it is unknown
	Function string
}

// String is file and line, as compilers write them.
func (s Site) String() string { return fmt.Sprintf("%s:%d", s.File, s.Line) }

// A ThreadID is the position of a thread: of its threadgroup in the grid, and its
// own in the threadgroup.
type ThreadID struct{ Group, Thread [3]int }

// String is the position of the thread, then that of its group.
func (t ThreadID) String() string { return fmt.Sprintf("thread %v of group %v", t.Thread, t.Group) }

// A Finding is a defect of a kernel, at one place or pair of places.
type Finding struct {
	Kind     FindingKind
	Severity Severity
	Kernel   string
	// Site is where it happened, and Path the calls that led there, from the inside
	// out, without Site itself.
	Site Site
	Path []Site
	// Other is the place of the other access, or the other barrier; its Line is 0 if
	// there is none.
	Other Site
	// Buffer is the buffer or threadgroup variable, "" for none, and Element the
	// index of the element in it. An index out of bounds is as it was computed.
	Buffer  string
	Element int
	// Threads are the thread at Site and the one at Other, which is the same where
	// there is none. An order-dependent output and an unwritten one have none.
	Threads [2]ThreadID
	// Schedule is the order of threads that showed it first, "" for what shows without running.
	Schedule string
	// Message is a sentence with the defect and a remedy.
	Message string
}

// String is the finding on a line, as compilers write them.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s: %s", f.Site, f.Severity, f.Kind, f.Message)
}

// BufferTraffic counts the bytes that a launch moves to and from one buffer or threadgroup variable.
type BufferTraffic struct {
	Name        string
	Threadgroup bool // a threadgroup variable, else a buffer
	// Read and Written count the bytes that the threads issue, UniqueRead and UniqueWritten the bytes at
	// different addresses.
	Read, Written, UniqueRead, UniqueWritten uint64
}

// Ratio is the number of bytes issued per byte at a different address: 1 is the least.
func (b BufferTraffic) Ratio() float64 {
	if b.UniqueRead+b.UniqueWritten == 0 {
		return 0
	}
	return float64(b.Read+b.Written) / float64(b.UniqueRead+b.UniqueWritten)
}

// Traffic counts the memory accesses and the synchronization of a launch. The figures depend on the compiler:
// compare only those of one compiler with equal flags.
type Traffic struct {
	Buffers []BufferTraffic
	// Barriers counts those of threadgroups and simdgroups as often as they opened,
	// SIMDOperations the SIMD functions of each simdgroup.
	Barriers, SIMDOperations uint64
	// Segments counts pieces of 32 bytes of device memory that an access of a
	// simdgroup touches, BankConflicts the turns that accesses to threadgroup
	// memory wait with 32 banks of 4 bytes.
	Segments, BankConflicts uint64
	ThreadgroupMemory       int // bytes of a group
	Compiler, Flags         string
}

// A Report is the result of Sanitize.
type Report struct {
	// UnsupportedByMLX is the reason for which MLX's custom kernels cannot express the launch. It is empty if they can.
	// The checker runs such launches too, as Metal would.
	UnsupportedByMLX string
	// AddressSpacesSkipped is the reason for which the address spaces were not checked in all of the text, such as a missing
	// clang. It is empty if they were.
	AddressSpacesSkipped string
	// Findings are in the order of their discovery, errors first.
	Findings []Finding
	// Outputs are those of the schedule in order, nil if it did not end.
	Outputs []Array
	// SameBits tells that the outputs of all schedules agreed to the last bit, and
	// Difference, if not, where one first did not.
	SameBits   bool
	Difference string
	Schedules  int // that ended
	// Traffic is that of the schedule in order.
	Traffic Traffic
	// Duration is how long all schedules took, without compiling and starting.
	Duration time.Duration
}

// Errors returns the findings that are errors.
func (r *Report) Errors() []Finding {
	var list []Finding
	for _, f := range r.Findings {
		if f.Severity == SeverityError {
			list = append(list, f)
		}
	}
	return list
}

// Sanitize runs a launch under the checker, in a process of its own: a shader that crashes or never ends
// becomes a finding. The text that runs is the one that MLX generates for the
// launch, and clang, if there is one, reads it for address spaces as Apple's compiler would.
// A launch that MLX cannot express runs too, and is marked (UnsupportedByMLX).
//
// The error is for launches that cannot run: a shader that does not compile, no compiler
// (ErrNoCompiler), a launch that does not fit the kernel. It does not name the kernel.
func (k *Kernel) Sanitize(ctx context.Context, l Launch, c Config, inputs ...Array) (*Report, error) {
	if c.Schedules <= 0 {
		c.Schedules = 3
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Minute
	}
	l = k.WithDefaults(l)
	if r := k.tooManyThreads(l); r != nil {
		return r, nil
	}
	if err := k.checkLaunch(l, inputs); err != nil {
		return nil, err
	}
	if err := k.checkBuffers(l, inputs); err != nil {
		return nil, err
	}
	if err := k.checkData(l, inputs); err != nil {
		return nil, err
	}
	s, err := k.checkedLaunch(l, inputs)
	if err != nil {
		return nil, err
	}
	spaces, outside, err := k.addressSpaces(ctx, l, inputs, s.text)
	if err != nil {
		return nil, err
	}
	r, err := s.run(ctx, c)
	if err != nil {
		return nil, err
	}
	if reason := k.UnsupportedByMLX(l, inputs...); reason != "" {
		outside = append(outside, reason)
	}
	r.UnsupportedByMLX, r.AddressSpacesSkipped = strings.Join(outside, "; "), spaces.unchecked
	r.Findings = append(slices.Clone(spaces.findings), r.Findings...)
	return r, nil
}
