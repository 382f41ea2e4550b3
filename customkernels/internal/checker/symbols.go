package checker

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Frame is a position in the shader's text. A path lists the frames from an access outwards to the kernel.
type Frame struct {
	Function string
	Line     int // line of the translation unit
}

// symbols holds the debug information of a program.
type symbols struct {
	data      *dwarf.Data
	functions []*scope
	lines     []dwarf.LineEntry // sorted by address
	constants []constants
}

// constants is a section with constant data.
type constants struct {
	begin uint64
	data  []byte
}

// variable returns the name of a variable at an address, "NAME:LINE NEXT", or "" if there is none.
func (s *symbols) variable(address uint64) string {
	for _, c := range s.constants {
		if at := address - c.begin; at < uint64(len(c.data)) {
			name, _, _ := strings.Cut(string(c.data[at:min(at+64, uint64(len(c.data)))]), ":")
			name, _, _ = strings.Cut(name, " ")
			return strings.TrimPrefix(name, "\x00")
		}
	}
	return ""
}

// scope is a function or an inlined call.
type scope struct {
	ranges   [][2]uint64
	origin   dwarf.Offset
	callFile string
	call     [2]int // line and column
	inner    []*scope
}

func (s *scope) contains(pc uint64) bool {
	return slices.ContainsFunc(s.ranges, func(r [2]uint64) bool { return pc >= r[0] && pc < r[1] })
}

func (p *Program) debugInformation() (*symbols, error) {
	p.symbolsOnce.Do(func() { p.symbols, p.symbolsErr = readSymbols(p.Path) })
	return p.symbols, p.symbolsErr
}

func readSymbols(name string) (*symbols, error) {
	f, err := elf.Open(name)
	if err != nil {
		return nil, fmt.Errorf("checker: debug information: %w", err)
	}
	defer f.Close()
	s := &symbols{}
	if s.data, err = f.DWARF(); err != nil {
		return nil, fmt.Errorf("checker: debug information: %w", err)
	}
	for _, section := range f.Sections {
		if strings.HasPrefix(section.Name, ".rodata") {
			if data, err := section.Data(); err == nil {
				s.constants = append(s.constants, constants{section.Addr, data})
			}
		}
	}
	reader := s.data.Reader()
	for {
		unit, err := reader.Next()
		if err != nil {
			return nil, fmt.Errorf("checker: debug information: %w", err)
		}
		if unit == nil {
			break
		}
		if unit.Tag != dwarf.TagCompileUnit {
			reader.SkipChildren()
			continue
		}
		lines, err := s.data.LineReader(unit)
		if err != nil || lines == nil {
			reader.SkipChildren()
			continue
		}
		var entry dwarf.LineEntry
		for lines.Next(&entry) == nil {
			s.lines = append(s.lines, entry)
		}
		if unit.Children {
			s.functions = append(s.functions, s.scopes(reader, lines.Files())...)
		}
	}
	slices.SortStableFunc(s.lines, func(a, b dwarf.LineEntry) int {
		switch {
		case a.Address < b.Address:
			return -1
		case a.Address > b.Address:
			return 1
		}
		return 0
	})
	return s, nil
}

// scopes reads the functions and inlined calls among the children of an entry.
func (s *symbols) scopes(r *dwarf.Reader, files []*dwarf.LineFile) []*scope {
	var found []*scope
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == 0 {
			return found
		}
		if e.Tag != dwarf.TagSubprogram && e.Tag != dwarf.TagInlinedSubroutine {
			if e.Children {
				found = append(found, s.scopes(r, files)...)
			}
			continue
		}
		f := &scope{origin: e.Offset}
		f.ranges, _ = s.data.Ranges(e)
		if origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset); ok {
			f.origin = origin
		}
		if line, ok := e.Val(dwarf.AttrCallLine).(int64); ok {
			f.call[0] = int(line)
		}
		if column, ok := e.Val(dwarf.AttrCallColumn).(int64); ok {
			f.call[1] = int(column)
		}
		if file, ok := e.Val(dwarf.AttrCallFile).(int64); ok && file >= 0 && int(file) < len(files) &&
			files[file] != nil {
			f.callFile = files[file].Name
		}
		if e.Children {
			f.inner = s.scopes(r, files)
		}
		found = append(found, f)
	}
}

// name returns the name of the function that is described at an offset.
func (s *symbols) name(at dwarf.Offset) string {
	for range 4 {
		r := s.data.Reader()
		r.Seek(at)
		e, err := r.Next()
		if err != nil || e == nil {
			return ""
		}
		if name, ok := e.Val(dwarf.AttrName).(string); ok {
			return name
		}
		next, ok := e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		if !ok {
			next, ok = e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		}
		if !ok {
			return ""
		}
		at = next
	}
	return ""
}

// locatedFrames returns the frames at a program counter, or at the first later one in the same function that has a
// line of the shader.
func (s *symbols) locatedFrames(pc uint64, located func(int) bool) ([]Frame, int) {
	good := func(frames []Frame) bool {
		return len(frames) > 0 && (located == nil || located(frames[len(frames)-1].Line))
	}
	frames, column := s.frames(pc)
	if good(frames) {
		return frames, column
	}
	at := slices.IndexFunc(s.functions, func(f *scope) bool { return f.contains(pc) })
	if at < 0 {
		return nil, 0
	}
	for _, e := range s.lines {
		if e.Address <= pc || !s.functions[at].contains(e.Address) {
			continue
		}
		if next, nextColumn := s.frames(e.Address); good(next) {
			return next, nextColumn
		}
	}
	return frames, column
}

// callers returns the frames of a list of return addresses except the first, up to a 0.
func (s *symbols) callers(calls []uint32) (frames []Frame) {
	for i, call := range calls {
		if call == 0 {
			break
		}
		if i > 0 {
			at, _ := s.frames(uint64(call) - 1)
			frames = append(frames, at...)
		}
	}
	return frames
}

// frames returns the calls at a program counter that lie in the shader's text, innermost first, and the column of the
// innermost one.
func (s *symbols) frames(pc uint64) (frames []Frame, column int) {
	i, found := slices.BinarySearchFunc(s.lines, pc, func(e dwarf.LineEntry, pc uint64) int {
		switch {
		case e.Address < pc:
			return -1
		case e.Address > pc:
			return 1
		}
		return 0
	})
	if found {
		// The line table may have several rows for one address. The last one is valid.
		for i+1 < len(s.lines) && s.lines[i+1].Address == pc {
			i++
		}
	} else {
		i--
	}
	if pc+1 == 0 || i < 0 || s.lines[i].EndSequence || s.lines[i].File == nil {
		return nil, 0
	}
	var chain []*scope // outermost first
	for list := s.functions; ; {
		at := slices.IndexFunc(list, func(f *scope) bool { return f.contains(pc) })
		if at < 0 {
			break
		}
		chain = append(chain, list[at])
		list = list[at].inner
	}
	file, at := s.lines[i].File.Name, [2]int{s.lines[i].Line, s.lines[i].Column}
	add := func(name string) {
		if frames = append(frames, Frame{name, at[0]}); len(frames) == 1 {
			column = at[1]
		}
	}
	for _, f := range slices.Backward(chain) {
		if name := s.name(f.origin); path.Base(file) == sourceName && name != "mlxg_invoke" {
			add(name)
		}
		file, at = f.callFile, f.call
	}
	if len(chain) == 0 && path.Base(file) == sourceName {
		add("")
	}
	return frames, column
}
