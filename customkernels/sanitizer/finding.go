package sanitizer

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/checker"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

var findingKinds = map[checker.Kind]FindingKind{
	checker.Race: FindingRace, checker.Fence: FindingFence,
	checker.DivergentBarrier: FindingDivergentBarrier, checker.ShuffleInactive: FindingShuffleInactive,
	checker.DivergentMatrix: FindingDivergentMatrix, checker.OutOfBounds: FindingOutOfBounds,
	checker.UninitializedRead: FindingUninitializedRead, checker.Deadlock: FindingDeadlock,
	checker.Limit: FindingLimit, checker.Crash: FindingCrash, checker.Timeout: FindingTimeout,
	checker.Lockstep: FindingLockstep, checker.SameValueWrite: FindingSameValueWrite,
	checker.BarrierAfterExit: FindingBarrierAfterExit, checker.DivergentReduction: FindingDivergentReduction,
	checker.NeverRead: FindingNeverRead, checker.Misaligned: FindingMisaligned, checker.Shift: FindingShift,
	checker.UnwrittenOutput: FindingUnwrittenOutput, checker.DroppedElement: FindingDroppedElement,
	checker.OutOfOwn: FindingOutOfBounds, checker.Overflow: FindingOverflow,
	checker.WriteAfterRead: FindingWriteAfterRead, checker.TextureBounds: FindingTextureBounds,
	checker.WriteToInput:      FindingWriteToInput,
	checker.DivergentArgument: FindingDivergentArgument,
}

// scheduleName returns the name of an order of threads in reports.
func scheduleName(n int, seed uint64) string {
	switch n {
	case 0:
		return "in order"
	case 1:
		return "reversed"
	}
	return fmt.Sprintf("shuffled (schedule %d, seed %d)", n, seed)
}

// findings translates the worker's findings and keeps one for each kind, buffer and pair of sites.
func (s *checkerRun) findings(r *checker.Result, c Config) []Finding {
	type key struct {
		kind      FindingKind
		low, high Site
		buffer    string
	}
	seen := map[key]bool{}
	var list []Finding
	for _, w := range r.Findings {
		f := s.finding(r, w, c)
		id := key{kind: f.Kind, low: f.Site.line(), high: f.Other.line(), buffer: f.Buffer}
		if cmp.Or(cmp.Compare(id.low.File, id.high.File), cmp.Compare(id.low.Line, id.high.Line)) > 0 {
			id.low, id.high = id.high, id.low
		}
		if !seen[id] {
			seen[id] = true
			list = append(list, f)
		}
	}
	return causes(list)
}

func (s *checkerRun) finding(r *checker.Result, w checker.Finding, c Config) Finding {
	f := Finding{
		Kind: findingKinds[w.Kind], Kernel: s.kernel.loaded.Name, Schedule: scheduleName(w.Schedule, c.Seed),
	}
	f.Severity = f.Kind.Severity()
	path := s.sites(w.Path, w.Column)
	if len(path) == 0 {
		path = []Site{s.kernel.site()}
	}
	f.Site, f.Path = path[0], path[1:]
	if other := s.sites(w.OtherPath, w.OtherColumn); len(other) > 0 {
		f.Other = other[0]
	}
	if w.Slot >= 0 && w.Slot < len(s.names) {
		f.Buffer = s.names[w.Slot]
		f.Element = elementAt(r.Slots[w.Slot], w.Offset)
	}
	if t := s.texture(w.Slot); t != nil && w.Kind == checker.TextureBounds {
		x, y, z, layer := w.PixelAt()
		f.Element = ((layer*t.Extent[2]+z)*t.Extent[1]+y)*t.Extent[0] + x
	}
	if w.Kind == checker.OutOfOwn {
		f.Buffer = w.Variable
		f.Element = elementAt(checker.Slot{Element: w.Size}, w.Offset)
	}
	if f.Kind != FindingUnwrittenOutput {
		f.Threads[0] = s.thread(w.Group, w.Thread)
		f.Threads[1] = f.Threads[0]
	}
	if w.OtherThread >= 0 {
		f.Threads[1] = s.thread(w.OtherGroup, w.OtherThread)
	}
	if f.Kind == FindingLimit {
		f.Site = s.limitSite()
	}
	f.Message = s.message(f, w, r)
	return f
}

// elementAt returns the element of a slot at an offset in bytes. The offset may be negative.
func elementAt(slot checker.Slot, offset int64) int {
	size := int64(max(slot.Element, 1))
	at := offset / size
	if offset%size < 0 {
		at--
	}
	return int(at)
}

// orderDependent returns the finding about outputs that differ between schedules.
func (s *checkerRun) orderDependent(r *checker.Result, c Config) Finding {
	d := r.Difference
	f := Finding{
		Kind: FindingOrderDependent, Severity: FindingOrderDependent.Severity(), Kernel: s.kernel.loaded.Name,
		Site:   s.kernel.site(),
		Buffer: s.names[d.Slot], Element: elementAt(r.Slots[d.Slot], d.Offset), Schedule: scheduleName(d.Schedule,
			c.Seed),
	}
	f.Message = fmt.Sprintf("%s[%d] differs between orders of threads, %s: add floats in a fixed order, "+
		"or add integers", f.Buffer, f.Element, f.Schedule)
	return f
}

// sites translates frames of the translation unit to places in the shader files, and drops frames without one. column is
// the column of the innermost frame.
func (s *checkerRun) sites(frames []checker.Frame, column int) []Site {
	var list []Site
	for i, frame := range frames {
		line := frame.Line - translate.HostLineShift
		if i > 0 {
			column = 0
		}
		at, ok := s.kernel.loaded.Locate(s.text, line, column)
		if column == 0 {
			at.Column = 0
		}
		if !ok || i+1 < len(frames) && s.implicit(frame.Function, line) {
			continue
		}
		function := frame.Function
		if strings.HasPrefix(function, "custom_kernel_") {
			function = s.kernel.loaded.Name
		}
		list = append(list, Site{at.File, at.Line, at.Column, function})
	}
	return list
}

var classHead = regexp.MustCompile(`\b(?:struct|class|union)\b\s*(\w*)`)

// implicit reports whether a function is the implicit copy or assignment of a class that is defined at the line.
// Reports show its caller instead.
func (s *checkerRun) implicit(function string, line int) bool {
	lines := strings.Split(s.text, "\n")
	if line < 1 || line > len(lines) {
		return false
	}
	m := classHead.FindStringSubmatch(lines[line-1])
	return m != nil && (function == "operator=" || function != "" && function == m[1])
}

// site returns the place of the kernel's name.
func (k *Kernel) site() Site {
	at := k.loaded.Parsed.Pos
	return Site{at.File, at.Line, at.Column, k.loaded.Name}
}

// thread returns the position of a thread, given the index of its group in the grid and its index in the group.
func (s *checkerRun) thread(group, thread int) ThreadID {
	var id ThreadID
	var size, groups [3]int
	for d := range 3 {
		size[d] = min(s.launch.Threadgroup[d], s.launch.Grid[d])
		groups[d] = (s.launch.Grid[d] + size[d] - 1) / size[d]
	}
	id.Group = [3]int{group % groups[0], group / groups[0] % groups[1], group / groups[0] / groups[1]}
	for d := range 3 {
		size[d] = min(size[d], s.launch.Grid[d]-id.Group[d]*size[d])
	}
	id.Thread = [3]int{thread % size[0], thread / size[0] % size[1], thread / size[0] / size[1]}
	return id
}

// limitSite returns the place of the first threadgroup variable, for findings about too much threadgroup memory.
func (s *checkerRun) limitSite() Site {
	for line, text := range strings.Split(s.source.Source, "\n") {
		if threadgroupName.MatchString(text) {
			if at, ok := s.kernel.loaded.Locate(s.text, line+1-translate.HostLineShift, 0); ok {
				return Site{File: at.File, Line: at.Line, Function: s.kernel.loaded.Name}
			}
		}
	}
	return s.kernel.site()
}

// tooManyThreads returns a report if the threadgroup is too large, and nil otherwise.
func (k *Kernel) tooManyThreads(l Launch) *Report {
	threads := 1
	for d := range 3 {
		if l.Threadgroup[d] < 0 || l.Grid[d] < 0 {
			return nil
		}
		threads *= min(l.Threadgroup[d], metalstd.MaxThreads+1)
	}
	most, limit := k.threadLimit()
	if threads <= most {
		return nil
	}
	return &Report{Findings: []Finding{{
		Kind: FindingLimit, Severity: SeverityError, Kernel: k.loaded.Name,
		Site: k.site(),
		Message: fmt.Sprintf("a threadgroup of %v threads: %s allows at most %d, so launch smaller ones",
			l.Threadgroup, limit, most),
	}}}
}

// message returns a sentence with the defect and a remedy.
func (s *checkerRun) message(f Finding, w checker.Finding, r *checker.Result) string {
	element := fmt.Sprintf("%s[%d]", f.Buffer, f.Element)
	a, b := f.Threads[0], f.Threads[1]
	verb := map[bool]string{true: "writes", false: "reads"}
	flag := "mem_device"
	if w.Slot >= len(s.buffers) {
		flag = "mem_threadgroup"
	}
	if name := s.fieldAt(w.Slot, w.Offset); name != "" {
		element = name
	}
	texture := s.texture(w.Slot)
	if texture != nil {
		flag = "mem_texture"
		x, y, z, layer := pixelAt(texture, f.Element)
		element = pixelName(f.Buffer, texture, x, y, z, layer)
	}
	pair := fmt.Sprintf("%v %s %s, which %v %s at %s", a, verb[w.Write], element, b, verb[w.OtherWrite], f.otherPlace())
	switch f.Kind {
	case FindingRace:
		switch {
		case a.Group != b.Group:
			return pair + ", and threadgroups run in no order: let one group own the element, use an atomic, or " +
				"launch a second kernel"
		case w.Atomic != w.OtherAtomic:
			return pair + ", and only one of the two is atomic: make both atomic, or put a threadgroup_barrier " +
				"between them"
		case w.Arms:
			return pair + " in the other arm of a branch, and the arms run in either order: let one thread access the " +
				"element, or use two branches with simdgroup_barrier(mem_flags::" + flag + ") between them"
		case w.Write && w.OtherWrite:
			return pair + ", in either order: give each thread an element of its own, use an atomic, or put " +
				"threadgroup_barrier(mem_flags::" + flag + ") between them"
		}
		return pair + ", in either order: put threadgroup_barrier(mem_flags::" + flag + ") between them"
	case FindingFence:
		if texture != nil && a == b {
			return fmt.Sprintf("%v reads %s, which it wrote at %s, and Metal makes the write visible to the read only after a "+
				"fence: call %s.fence() between them", a, element, f.otherPlace(), f.Buffer)
		}
		return pair + ", and the flags of the barrier between them omit this memory: add mem_flags::" + flag
	case FindingWriteAfterRead:
		return pair + " before a barrier whose flags omit this memory: add mem_flags::" + flag
	case FindingLockstep:
		return pair + ", ordered only if the lanes of a simdgroup execute in lockstep: put " +
			"simdgroup_barrier(mem_flags::" + flag + ") between them"
	case FindingSameValueWrite:
		return fmt.Sprintf("%v writes %s, to which %v writes the same value at %s without order: let one thread "+
			"write it", a, element, b, f.otherPlace())
	case FindingDivergentBarrier:
		if f.Other.Line == 0 {
			return fmt.Sprintf("%v waits at this barrier, which %v does not reach: let all threads of the group "+
				"reach it", a, b)
		}
		if f.Site.sameLine(f.Other) {
			mine, other := s.calls(f, w)
			return fmt.Sprintf("%v waits at this barrier in %s, and %v in %s: let all threads of the group reach it in "+
				"one call", a, mine, b, other)
		}
		return fmt.Sprintf("%v waits at this barrier while %v is at %s: let all threads of the group reach the same "+
			"barrier", a, b, f.otherPlace())
	case FindingBarrierAfterExit:
		return fmt.Sprintf("%v waits at this barrier after %v has returned: let every thread of the group run until "+
			"the last barrier", a, b)
	case FindingShuffleInactive:
		if w.Detail >= 32 {
			return fmt.Sprintf("%v reads the value of a lane outside of its simdgroup's 32, or of its quadgroup's 4: "+
				"check the lane index", a)
		}
		if f.Site.sameLine(f.Other) {
			mine, other := s.calls(f, w)
			return fmt.Sprintf("%v reads, in %s, the value of lane %d, which is in %s: let all lanes of the simdgroup "+
				"execute one call", a, mine, w.Detail, other)
		}
		return fmt.Sprintf("%v reads the value of lane %d, which does not execute the call: let all lanes of the "+
			"simdgroup execute it", a, w.Detail)
	case FindingDivergentArgument:
		group, shuffle := "simdgroup", "simd_shuffle"
		if w.Size == 4 {
			group, shuffle = "quadgroup", "quad_shuffle"
		}
		return fmt.Sprintf("%v passes %d and %v passes %d: the lane of a broadcast, and the delta or mask of a shuffle, must "+
			"be equal in all threads of the %s: use %s, which takes a lane per thread", a, w.Detail, b, w.Offset, group, shuffle)
	case FindingDivergentMatrix:
		return fmt.Sprintf("a simdgroup matrix operation with %d of 32 lanes: let all lanes execute it",
			w.Detail)
	case FindingDivergentReduction:
		return fmt.Sprintf("a SIMD reduction without %v: let all lanes of the simdgroup execute the call, with "+
			"a neutral value in the lanes that have none", b)
	case FindingOutOfBounds:
		if w.Kind == checker.OutOfOwn {
			return fmt.Sprintf("%v %s %d bytes of its own variable%s, which has %d, at offset %d: check the index",
				a, verb[w.Write], w.Size, optional(w.Variable), w.Detail, w.Offset)
		}
		if w.ArraySize > 0 {
			return fmt.Sprintf("%v accesses element %d of an array or vector of size %d: check the index",
				a, w.Index, w.ArraySize)
		}
		if w.Slot < 0 || w.Slot >= len(s.names) {
			return fmt.Sprintf("%v %s %d bytes at %#x, outside of every buffer: check the pointer",
				a, verb[w.Write], w.Size, w.Address)
		}
		slot := r.Slots[w.Slot]
		return fmt.Sprintf("%v %s %s, but %s has %d elements: check the index against its size",
			a, verb[w.Write], element, f.Buffer, slot.Size/max(slot.Element, 1))
	case FindingWriteToInput:
		return fmt.Sprintf("%v writes %s, and %s is declared const or constant: write to an output, because MLX shares the "+
			"memory of inputs with other arrays", a, element, f.Buffer)
	case FindingTextureBounds:
		return boundsMessage(f, w, texture)
	case FindingUninitializedRead:
		if w.Write {
			return fmt.Sprintf("%v writes %s, computed from a local variable without a value: initialize "+
				"the variable in its declaration", a, element)
		}
		if w.Slot < len(s.buffers) {
			return fmt.Sprintf("%v reads %s, which no thread has written: write it first, or give its initial value "+
				"in Launch.InitValue or Launch.InOut (init= or inout: in a launch description)", a, element)
		}
		return fmt.Sprintf("%v reads %s, which no thread of the group has written: write it first", a, element)
	case FindingUnwrittenOutput:
		slot := r.Slots[w.Slot]
		return fmt.Sprintf("no thread writes %s, the first of %d of %d elements that stay undefined: write all of "+
			"them, or give the initial value of outputs in Launch.InitValue (init= in a launch description), or "+
			"name the output in Launch.Undefined (undefined:)",
			element, w.Count, slot.Size/max(slot.Element, 1))
	case FindingNeverRead:
		return fmt.Sprintf("%v writes %s, and no thread reads the value: a reduction that should read it omits elements",
			a, element)
	case FindingDroppedElement:
		return fmt.Sprintf("%v writes %s, and the reduction that follows omits it: let the last step read the values of all "+
			"simdgroups; in a tree over an odd width, continue with (width + 1) / 2", a, element)
	case FindingMisaligned:
		if f.Buffer == "" {
			element = fmt.Sprintf("address %#x", w.Address)
		}
		return fmt.Sprintf("%v accesses %s as a type with an alignment of %d bytes, and the address is not aligned: "+
			"use a packed vector, or an aligned address", a, element, w.Detail)
	case FindingOverflow:
		if w.Detail == 0 {
			return fmt.Sprintf("%v computes an index that does not fit 32 bits and wraps around: compute it in ulong or "+
				"size_t", a)
		}
		return fmt.Sprintf("%v computes a signed integer that does not fit its type, which C++ leaves undefined: "+
			"compute in a wider or an unsigned type", a)
	case FindingShift:
		return fmt.Sprintf("%v shifts a number of %d bits by %d: Metal uses the lower bits of the count, and C++ and "+
			"CUDA leave the result undefined, so handle this case separately", a, w.Detail, w.Offset)
	case FindingDeadlock:
		return fmt.Sprintf("%v waits in a loop for another thread to store a value: Metal does not guarantee that the "+
			"other thread ever runs, so end the kernel here and launch another kernel", a)
	case FindingLimit:
		return fmt.Sprintf("%d bytes of threadgroup memory: a GPU has %d, so use smaller tiles",
			r.ThreadgroupMemory, metalstd.MaxThreadgroupMemory)
	case FindingTimeout:
		return fmt.Sprintf("%v was still running here at the time limit: check the condition of the loop", a)
	}
	return crashMessage(a, w)
}

// calls returns where the two threads of a finding have called its function. The places are the outermost ones that
// differ.
func (s *checkerRun) calls(f Finding, w checker.Finding) (mine, other string) {
	path, others := append([]Site{f.Site}, f.Path...), s.sites(w.OtherPath, 0)
	place := func(at Site) string { return Finding{Site: f.Site, Other: at}.otherPlace() }
	for i := 1; i <= min(len(path), len(others)); i++ {
		a, b := path[len(path)-i], others[len(others)-i]
		if !a.sameLine(b) {
			return "the call at " + place(a), "the call at " + place(b)
		}
	}
	return "one call at " + place(path[len(path)-1]), "another call there"
}

// optional returns a space and the name, or "" without a name.
func optional(name string) string {
	if name == "" {
		return ""
	}
	return " " + name
}

// otherPlace returns Other for messages: only the line if it is in the same file as Site.
func (f Finding) otherPlace() string {
	if f.Other.File == f.Site.File {
		return fmt.Sprintf("line %d", f.Other.Line)
	}
	return f.Other.String()
}

// crashMessage returns the message about a signal that ended the worker.
func crashMessage(a ThreadID, w checker.Finding) string {
	const sigill, sigtrap, sigabrt, sigbus, sigfpe, sigsegv = 4, 5, 6, 7, 8, 11
	switch {
	case w.Detail == sigfpe:
		return fmt.Sprintf("%v divides an integer by zero: check the divisor", a)
	case w.Detail == sigsegv && w.Write:
		return fmt.Sprintf("%v overflowed its stack: use smaller local arrays, and no recursion", a)
	case w.Detail == sigsegv, w.Detail == sigbus:
		return fmt.Sprintf("%v accesses address %#x, where there is no memory: check the pointer", a, w.Address)
	}
	return fmt.Sprintf("%v was ended by signal %d", a, w.Detail)
}
