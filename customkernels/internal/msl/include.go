package msl

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// includer puts a shader file and what it includes together into one text.
type includer struct {
	fsys  fs.FS
	text  strings.Builder
	lines []Position // where each line of the text comes from
	files map[string]included
	count int // of branches
}

// included is how a file came into the text.
type included struct {
	at       Position // of the #include
	branches []int    // around it that a preprocessor may leave out, outermost first
}

// readShader reads a shader file with the text of what it includes in the place of the #include
// lines, each file once. Metal's own headers stay #include lines.
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

// begin says where the line of the text that begins here comes from.
func (in *includer) begin(file string, line, offset int) {
	in.lines = append(in.lines, Position{File: file, Line: line, Column: 1, Offset: offset})
}

// paste adds a file that is included within these branches of conditionals. The number of a
// branch that the file's first inclusion always takes is 0.
func (in *includer) paste(name, text string, branches []int) error {
	s := &Structure{file: name, Text: text, All: Tokenize(text)}
	off, _, err := s.conditionals(nil)
	if err != nil {
		return err
	}
	s.Off = off
	at, line := 0, 1
	in.begin(name, line, at)
	// write moves over the text before an offset: it is added, or blanks if it is not kept.
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
		case s.Off[i]:
		case word == "pragma" && slices.Equal(words, []string{"once"}), word == "line",
			word != "" && IsDigit(word[0]):
			// A line number of another file would misplace every message.
			write(t.Offset, true)
			write(s.All[end-1].End(), false)
		case word == "include_next" || word == "embed":
			return Errorf(s.Position(t), "#%s is no part of Metal; write #include \"name.h\" for a file of yours", word)
		case word == "include" || word == "import":
			j := slices.IndexFunc(s.All[i:end], func(t Token) bool { return t.Kind == HeaderName })
			if j < 0 {
				return Errorf(s.Position(t), "#%s needs a name in quotes, such as \"name.h\"; a macro cannot stand for it", word)
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

// branch is a new number of a branch.
func (in *includer) branch() int {
	in.count++
	return in.count
}

// include adds the file that a header names, on a line of its own, unless it is there already.
func (in *includer) include(s *Structure, header Token, branches []int) (pasted bool, err error) {
	at, name := s.Position(header), strings.Trim(header.Text, `<>"`)
	switch {
	case strings.HasPrefix(name, "mlx/"):
		return false, Errorf(at, "MLX's own headers cannot be included in a shader file; copy what it needs of %s", header.Text)
	case strings.HasPrefix(header.Text, "<"):
		return false, Errorf(at, "%s is none of Metal's headers; write #include %q for a file of yours", header.Text, name)
	}
	if path.IsAbs(name) {
		return false, Errorf(at, "%s is an absolute path; write it relative to the folder of the file that includes it", header.Text)
	}
	name = path.Join(path.Dir(s.file), name)
	branches = slices.DeleteFunc(slices.Clone(branches), func(b int) bool { return b == 0 })
	if first, found := in.files[name]; found {
		if n := len(first.branches); n > len(branches) || !slices.Equal(first.branches, branches[:n]) {
			return false, Errorf(at, "%s is pasted once, at %s under a condition that does not hold for this place; include it before the condition",
				header.Text, first.at)
		}
		return false, nil
	}
	var src []byte
	info, err := fs.Stat(in.fsys, name)
	if err == nil && !info.Mode().IsRegular() {
		return false, Errorf(at, "%s is no regular file: devices, pipes and folders cannot be included", header.Text)
	}
	if err == nil {
		src, err = fs.ReadFile(in.fsys, name)
	}
	switch {
	case err != nil && !fs.ValidPath(name): // which file systems refuse, each in its own words
		return false, Errorf(at, "%s leads to %s and cannot be read: %v; it must lie in the file system that the shader is loaded from",
			header.Text, name, err)
	case err != nil:
		return false, Errorf(at, "%s cannot be read: %v; its path counts from the folder of the file that includes it", header.Text, err)
	}
	in.files[name] = included{at, branches}
	in.text.WriteByte('\n')
	return true, in.paste(name, string(src), branches)
}

// guards reports whether "#ifndef NAME", which ends before token i, is the guard that has a file
// read once: "#define NAME" follows.
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

// isMetalHeader reports whether a header is one that comes with Metal.
func IsMetalHeader(name string) bool {
	return strings.HasPrefix(name, "metal_") || strings.HasPrefix(name, "simd/")
}
