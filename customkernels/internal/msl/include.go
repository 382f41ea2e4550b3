package msl

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// includer joins a shader file and its included files into one text.
type includer struct {
	fsys  fs.FS
	text  strings.Builder
	lines []Line // origin of each line of the text
	files map[string]included
	count int // branches of conditionals so far
}

// included records the first inclusion of a file.
type included struct {
	at       Position // position of the #include
	branches []int    // branches around it that a preprocessor may exclude, outermost first
}

// readShader reads a shader file and replaces each #include line by the text of the file, once per file. Includes of
// Metal's own headers stay.
func readShader(fsys fs.FS, name string) (*Structure, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	in := &includer{fsys: fsys, files: map[string]included{path.Clean(name): {}}}
	if err := in.paste(name, string(src), nil); err != nil {
		return nil, err
	}
	return NewStructure(name, in.text.String(), in.lines)
}

// begin records the origin of the line that begins here.
func (in *includer) begin(file string, line, offset int) {
	in.lines = append(in.lines, Line{Position: Position{File: file, Line: line, Column: 1, Offset: offset}})
}

// paste adds a file that is included within the given branches of conditionals. Branch 0 is the body of an include
// guard, which the first inclusion of the file always takes.
func (in *includer) paste(name, text string, branches []int) error {
	s := newStructure(name, text, nil)
	off, _, err := s.conditionals(nil)
	if err != nil {
		return err
	}
	s.Excluded = off
	at, line := 0, 1
	in.begin(name, line, at)
	// write adds the text before an offset, or blanks in its place if keep is false.
	write := func(end int, keep bool) {
		for ; at < end; at++ {
			switch c := text[at]; {
			case c == '\n':
				in.text.WriteByte(c)
				line++
				in.begin(name, line, at+1)
			case keep || c == '\r':
				in.text.WriteByte(c)
			default:
				in.text.WriteByte(' ')
			}
		}
	}
	for i, t := range s.All {
		if !s.BeginsDirective(i) {
			continue
		}
		end := s.DirectiveEnd(i)
		word, words := s.Directive(i)
		switch {
		case word == "ifndef" && s.guards(end, words):
			branches = append(branches, 0)
		case word == "if" || word == "ifdef" || word == "ifndef":
			branches = append(branches, in.branch())
		case word == "elif" || word == "else":
			branches[len(branches)-1] = in.branch()
		case word == "endif":
			branches = branches[:len(branches)-1]
		case s.Excluded[i]:
		case word == "pragma" && slices.Equal(words, []string{"once"}), word == "line",
			word != "" && IsDigit(word[0]):
			// A #line directive would give every message a wrong position.
			write(t.Offset, true)
			write(s.All[end-1].End(), false)
		case word == "include_next" || word == "embed":
			return Errorf(s.Position(t), "#%s is not part of Metal; write #include \"name.h\" for a file of yours", word)
		case word == "include" || word == "import":
			j := slices.IndexFunc(s.All[i:end], func(t Token) bool { return t.Kind == HeaderName })
			if j < 0 {
				return Errorf(s.Position(t), "#%s needs a name in quotes, such as \"name.h\"; a macro cannot stand "+
					"for it", word)
			}
			header := s.All[i+j]
			if IsMetalHeader(strings.Trim(header.Text, `<>"`)) {
				continue
			}
			write(t.Offset, true)
			write(s.All[end-1].End(), false)
			pasted, err := in.include(s, header, branches)
			if err != nil {
				return err
			}
			if pasted {
				in.text.WriteByte('\n')
				in.begin(s.file, line, at)
			}
		}
	}
	write(len(text), true)
	return nil
}

// branch returns a new branch number.
func (in *includer) branch() int {
	in.count++
	return in.count
}

// include adds the file of an #include on a separate line. pasted is false if the text has the file already.
func (in *includer) include(s *Structure, header Token, branches []int) (pasted bool, err error) {
	at, name := s.Position(header), strings.Trim(header.Text, `<>"`)
	switch {
	case strings.HasPrefix(name, "mlx/"):
		return false, Errorf(at, "MLX's own headers cannot be included in a shader file; copy the declarations that the "+
			"shader uses from %s", header.Text)
	case strings.HasPrefix(header.Text, "<"):
		return false, Errorf(at, "%s is not a header of Metal; write #include %q for a file of yours", header.Text, name)
	}
	if path.IsAbs(name) {
		return false, Errorf(at, "%s is an absolute path; write it relative to the folder of the including file",
			header.Text)
	}
	name = path.Join(path.Dir(s.file), name)
	branches = slices.DeleteFunc(slices.Clone(branches), func(b int) bool { return b == 0 })
	if first, found := in.files[name]; found {
		if n := len(first.branches); n > len(branches) || !slices.Equal(first.branches, branches[:n]) {
			return false, Errorf(at, "%s is already included at %s, under a condition that may be false here; include "+
				"it before the condition",
				header.Text, first.at)
		}
		return false, nil
	}
	var src []byte
	info, err := fs.Stat(in.fsys, name)
	if err == nil && !info.Mode().IsRegular() {
		return false, Errorf(at, "%s is not a regular file: devices, pipes and folders cannot be included", header.Text)
	}
	if err == nil {
		src, err = fs.ReadFile(in.fsys, name)
	}
	switch {
	case err != nil && !fs.ValidPath(name): // each file system has its own message for this
		return false, Errorf(at, "%s leads to %s and cannot be read: %v; it must lie in the file system that the "+
			"shader is loaded from",
			header.Text, name, err)
	case err != nil:
		return false, Errorf(at, "%s cannot be read: %v; its path is relative to the folder of the including file",
			header.Text, err)
	}
	in.files[name] = included{at, branches}
	in.text.WriteByte('\n')
	return true, in.paste(name, string(src), branches)
}

// guards reports whether "#ifndef NAME", which ends before token i, is an include guard: "#define NAME" follows.
func (s *Structure) guards(i int, name []string) bool {
	for i < len(s.All) && s.All[i].Kind == Comment {
		i++
	}
	if i == len(s.All) || !s.BeginsDirective(i) {
		return false
	}
	word, words := s.Directive(i)
	return word == "define" && len(words) > 0 && slices.Equal(words[:1], name)
}

// IsMetalHeader reports whether a header is part of Metal.
func IsMetalHeader(name string) bool {
	return strings.HasPrefix(name, "metal_") || strings.HasPrefix(name, "simd/")
}
