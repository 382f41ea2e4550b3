package sanitizer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config sets the thoroughness of Sanitize. The zero value is valid.
type Config struct {
	// Schedules is the number of orders of threads and threadgroups to run: in order, reversed, and then shuffled. 0
	// means 3.
	Schedules int
	// Seed determines the shuffled orders.
	Seed uint64
	// Timeout limits the total time of all schedules. 0 means one minute.
	Timeout time.Duration
}

// FindingKind is a kind of defect.
type FindingKind string

// The kinds of findings. The first group are errors: the kernel is wrong on some GPU or in some order of threads. The
// second group, from FindingLockstep on, are findings about portability: the kernel works on current GPUs, but Metal
// does not guarantee it.
const (
	FindingRace              FindingKind = "race"               // two unordered accesses to one element
	FindingFence             FindingKind = "fence"              // a barrier whose flags omit the memory of two accesses
	FindingDivergentBarrier  FindingKind = "divergent-barrier"  // threads of a group at different barriers
	FindingShuffleInactive   FindingKind = "shuffle-inactive"   // a value from an inactive lane
	FindingDivergentArgument FindingKind = "divergent-argument" // a lane, delta or mask that must be equal in all lanes
	FindingDivergentMatrix   FindingKind = "divergent-matrix"   // a matrix operation with inactive lanes
	FindingOutOfBounds       FindingKind = "out-of-bounds"      // an access outside of every buffer and variable
	FindingWriteToInput      FindingKind = "write-to-input"     // a write to a const or constant buffer
	FindingMisaligned        FindingKind = "misaligned"         // a pointer that is not aligned to its type
	FindingUninitializedRead FindingKind = "uninitialized-read" // a read of a value that no thread has written
	FindingUnwrittenOutput   FindingKind = "unwritten-output"   // an output with elements that no thread writes
	FindingDroppedElement    FindingKind = "dropped-element"    // a value that a reduction omits
	FindingOverflow          FindingKind = "overflow"           // integer arithmetic that wraps around
	FindingDeadlock          FindingKind = "deadlock"           // a thread that waits in a loop for another thread
	FindingLimit             FindingKind = "limit"              // more threads or memory than a GPU has
	FindingCrash             FindingKind = "crash"              // a fault: division by zero, stack overflow
	FindingTimeout           FindingKind = "timeout"            // the launch did not end in time
	FindingAddressSpace      FindingKind = "address-space"      // memory of one address space used as another's
	FindingPositionType      FindingKind = "position-type"      // types of thread positions that do not match
	FindingWrongValue        FindingKind = "wrong-value"        // an output element that is not the expected one
	FindingAmbiguous         FindingKind = "ambiguous-call"     // a Metal call with arguments of different types

	FindingLockstep           FindingKind = "lockstep"            // correct only if lanes execute in lockstep
	FindingWriteAfterRead     FindingKind = "write-after-read"    // a barrier, whose flags omit the memory, between read and write
	FindingSameValueWrite     FindingKind = "same-value-write"    // unordered writes of the same value
	FindingBarrierAfterExit   FindingKind = "barrier-after-exit"  // a barrier after some threads have returned
	FindingDivergentReduction FindingKind = "divergent-reduction" // a SIMD reduction with inactive lanes
	FindingNeverRead          FindingKind = "never-read"          // a threadgroup value that no thread reads
	FindingOrderDependent     FindingKind = "order-dependent"     // outputs that depend on the order of threads
	FindingShift              FindingKind = "shift"               // a shift by the number of bits or more
	FindingTextureBounds      FindingKind = "texture-bounds"      // an access outside of a texture
)

// kinds holds the description of every kind, in the order of the constants.
var kinds = []struct {
	kind        FindingKind
	description string
}{
	{FindingRace, "Two threads access one element without order, and at least one of them writes."},
	{FindingFence, "The flags of the barrier between two accesses omit their memory."},
	{FindingDivergentBarrier, "Threads of a group wait at different barriers, or some threads skip a barrier."},
	{FindingShuffleInactive, "A thread reads the value of a lane that does not execute the call."},
	{FindingDivergentArgument, "A lane, delta or mask that must be equal in all lanes differs between lanes."},
	{FindingDivergentMatrix, "Only some lanes of a simdgroup execute a matrix operation."},
	{FindingOutOfBounds, "An access lies outside of every buffer and variable."},
	{FindingWriteToInput, "A thread writes to a buffer that is declared const or constant."},
	{FindingMisaligned, "A pointer is not aligned to its type."},
	{FindingUninitializedRead, "A thread reads a value that no thread has written."},
	{FindingUnwrittenOutput, "An output has elements that no thread writes."},
	{FindingDroppedElement, "A reduction omits a value."},
	{FindingOverflow, "Integer arithmetic overflows."},
	{FindingDeadlock, "A thread waits in a loop for another thread."},
	{FindingLimit, "The launch exceeds a limit of GPUs."},
	{FindingCrash, "The kernel crashed."},
	{FindingTimeout, "The launch did not end in time."},
	{FindingAddressSpace, "Memory of one address space is used as that of another."},
	{FindingPositionType, "The types of thread positions do not match."},
	{FindingWrongValue, "An output has other values than expected."},
	{FindingAmbiguous, "A call of a Metal function is ambiguous."},
	{FindingLockstep, "The order of two accesses depends on lanes that execute in lockstep."},
	{FindingWriteAfterRead, "The flags of the barrier between a read and a later write omit their memory."},
	{FindingSameValueWrite, "Several threads write the same value to one element without order."},
	{FindingBarrierAfterExit, "Threads wait at a barrier after others have returned."},
	{FindingDivergentReduction, "Only some lanes of a simdgroup execute a SIMD reduction."},
	{FindingNeverRead, "No thread reads a value of threadgroup memory."},
	{FindingOrderDependent, "The outputs depend on the order of threads."},
	{FindingShift, "A number is shifted by as many bits as it has, or more."},
	{FindingTextureBounds, "A read or write lies outside of a texture."},
}

// FindingKinds returns all kinds, errors first.
func FindingKinds() []FindingKind {
	list := make([]FindingKind, len(kinds))
	for i, k := range kinds {
		list[i] = k.kind
	}
	return list
}

// Description returns a sentence that describes the kind.
func (k FindingKind) Description() string {
	for _, known := range kinds {
		if known.kind == k {
			return known.description
		}
	}
	return ""
}

// Severity distinguishes errors from findings about portability.
type Severity string

// The severities.
const (
	SeverityError       Severity = "error"
	SeverityPortability Severity = "portability"
)

// Severity returns the severity of findings of the kind.
func (k FindingKind) Severity() Severity {
	switch k {
	case FindingLockstep, FindingWriteAfterRead, FindingSameValueWrite, FindingBarrierAfterExit, FindingDivergentReduction,
		FindingNeverRead, FindingOrderDependent, FindingShift, FindingTextureBounds:
		return SeverityPortability
	}
	return SeverityError
}

// A Site is a place in a shader file.
type Site struct {
	File     string
	Line     int // from 1; 0 if unknown
	Column   int // in bytes, from 1; 0 if unknown
	Function string
}

// line returns the place without its column, which differs between accesses of one line.
func (s Site) line() Site {
	s.Column = 0
	return s
}

// sameLine reports whether two places are on one line. Their functions may be instances of one template.
func (s Site) sameLine(o Site) bool { return s.File == o.File && s.Line == o.Line }

// String returns file:line.
func (s Site) String() string { return fmt.Sprintf("%s:%d", s.File, s.Line) }

// A ThreadID is the position of a threadgroup in the grid and of a thread in the threadgroup.
type ThreadID struct{ Group, Thread [3]int }

// String returns both positions.
func (t ThreadID) String() string { return fmt.Sprintf("thread %v of group %v", t.Thread, t.Group) }

// A Finding is a defect of a kernel, at one place or two.
type Finding struct {
	Kind     FindingKind
	Severity Severity
	Kernel   string
	// Site is the place of the access or operation. Path holds its callers, innermost first.
	Site Site
	Path []Site
	// Other is the place of the other access or barrier. Its Line is 0 if there is none.
	Other Site
	// More holds further places of the same cause, such as the other reads before a missing barrier.
	More []Site
	// Buffer is the name of the buffer, texture or threadgroup variable, or empty. Element is the index in it, of a pixel in
	// row-major order for a texture. It may be out of bounds.
	Buffer  string
	Element int
	// Threads are the threads at Site and at Other, which are equal if Other is empty. Findings about whole outputs
	// have none.
	Threads [2]ThreadID
	// Schedule is the first order of threads that showed the defect. It is empty if the defect was found without
	// running.
	Schedule string
	// Message is a sentence with the defect and a remedy.
	Message string
}

// String returns the finding on one line, in the format of compilers.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s: %s", f.Site, f.Severity, f.Kind, f.Message)
}

// BufferTraffic counts the bytes that a launch reads and writes in one buffer or threadgroup variable.
type BufferTraffic struct {
	Name        string
	Threadgroup bool // a threadgroup variable instead of a buffer
	// Read and Written count the bytes of all accesses. UniqueRead and UniqueWritten count bytes at distinct addresses.
	Read, Written, UniqueRead, UniqueWritten uint64
}

// Ratio returns the accessed bytes divided by the bytes at distinct addresses. 1 is optimal. It is 0 without accesses.
func (b BufferTraffic) Ratio() float64 {
	if b.UniqueRead+b.UniqueWritten == 0 {
		return 0
	}
	return float64(b.Read+b.Written) / float64(b.UniqueRead+b.UniqueWritten)
}

// Traffic counts memory accesses and synchronization of a launch. The numbers depend on the compiler and its flags.
type Traffic struct {
	Buffers []BufferTraffic
	// Barriers counts executions of threadgroup and simdgroup barriers, once for each group. SIMDOperations counts SIMD
	// functions, once for each simdgroup.
	Barriers, SIMDOperations uint64
	// Segments counts the 32-byte segments of device memory that accesses of simdgroups touch. BankConflicts counts the
	// additional cycles of accesses to threadgroup memory that has 32 banks of 4 bytes.
	Segments, BankConflicts uint64
	ThreadgroupMemory       int // bytes of each threadgroup
	Compiler, Flags         string
}

// A Report is the result of Sanitize.
type Report struct {
	// UnsupportedByMLX is the reason why MLX's custom kernels do not support the launch. It is empty if they do. The
	// checker runs such launches too, as Metal would.
	UnsupportedByMLX string
	// AddressSpacesSkipped is the reason why address spaces were not fully checked, such as a missing clang. It is
	// empty if they were.
	AddressSpacesSkipped string
	// CompilerNote says why another compiler than the usual one compiled the kernel, and which findings it misses. It is
	// empty otherwise.
	CompilerNote string
	// Findings are sorted by severity, errors first, and then by discovery.
	Findings []Finding
	// Outputs are the outputs of the in-order schedule, or nil if that schedule did not end.
	Outputs []Array
	// SameBits reports whether all schedules ended with identical outputs. Difference names the first difference
	// between schedules that ended, and is empty if there is none.
	SameBits   bool
	Difference string
	Schedules  int // number of schedules that ended
	// Traffic is the traffic of the in-order schedule.
	Traffic Traffic
	// Duration is the time of all schedules, without compilation and process start.
	Duration time.Duration
}

// Errors returns the findings with severity error.
func (r *Report) Errors() []Finding {
	var list []Finding
	for _, f := range r.Findings {
		if f.Severity == SeverityError {
			list = append(list, f)
		}
	}
	return list
}

// Sanitize runs a launch under the checker, in a separate process, so that a crash or an endless loop becomes a
// finding. It runs the source that MLX generates for the launch. If clang is installed, it also checks address spaces,
// as Apple's compiler would. A launch that MLX does not support runs too: see Report.UnsupportedByMLX.
//
// The error is for launches that cannot run: a shader that does not compile, a missing compiler (ErrNoCompiler), a
// launch that does not fit the kernel, or a context that ended. It does not contain the name of the kernel. A
// threadgroup with too many threads or too much memory is a FindingLimit, not an error.
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
	if err := k.checkExpected(l); err != nil {
		return nil, err
	}
	s, err := k.newRun(l, inputs)
	if err != nil {
		return nil, err
	}
	var (
		spaces      addressSpaceResult
		unsupported []string
		spacesErr   error
		checked     = make(chan struct{})
	)
	go func() { // clang reads the text while g++ compiles it
		defer close(checked)
		spaces, unsupported, spacesErr = k.addressSpaces(ctx, l, inputs, s.text)
	}()
	r, err := s.run(ctx, c)
	<-checked
	if spacesErr != nil {
		return nil, spacesErr
	}
	if err != nil {
		return nil, err
	}
	if reason := k.UnsupportedByMLX(l, inputs...); reason != "" {
		unsupported = append(unsupported, reason)
	}
	r.UnsupportedByMLX, r.AddressSpacesSkipped = strings.Join(unsupported, "; "), spaces.skipped
	r.Findings = slices.Concat(k.positionTypes(), spaces.findings, r.Findings)
	return r, nil
}
