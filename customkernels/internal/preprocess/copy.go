package preprocess

import (
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// copier copies a shader and the files that it may include. A copy has a number for a name, and so have the #include
// lines that lead to it. An #include that leads to no file gets a name that does not exist, and a reason,
// which is an error only if the preprocessor reaches the line.
type copier struct {
	fsys    fs.FS
	include []string
	files   []file
	copies  []string       // texts of the copies, by number
	numbers map[string]int // by name
	refused []refusal
}

// refusal is the reason why a file cannot be included.
type refusal struct {
	name string // in the copy's #include
	err  error
}

// copy adds a file and, if it is new, the files that it includes. lines is as in [msl.NewStructure].
func (c *copier) copy(name, text string, lines []msl.Line) error {
	number := len(c.files)
	c.numbers[name] = number
	f := newFile(name, text, lines)
	c.files, c.copies = append(c.files, f), append(c.copies, "")
	if err := f.structure.Spliced(); err != nil {
		return err
	}
	edits := msl.Edits{Text: text}
	s := f.structure
	for i, t := range s.All {
		if !s.BeginsDirective(i) {
			continue
		}
		end := s.DirectiveEnd(i)
		word, _ := s.Directive(i)
		switch {
		case word == "line", word != "" && msl.IsDigit(word[0]): // would change the positions of messages
			edits.Blank(t.Offset, s.All[end-1].End())
		case word == "include", word == "import", word == "include_next", word == "embed":
			with, err := c.directive(s, i, end, word)
			if err != nil {
				return err
			}
			edits.Replace(t.Offset, s.All[end-1].End(), with)
		}
	}
	c.copies[number] = edits.Apply()
	if !strings.Contains(c.copies[number], "__has_include") {
		return nil
	}
	c.copies[number] = hasInclude.ReplaceAllStringFunc(c.copies[number], func(q string) string {
		m := hasInclude.FindStringSubmatch(q)
		if msl.IsMetalHeader(m[2]) {
			return "1"
		}
		if _, _, err := c.find(s.File(), m[1]+m[2]); err != nil {
			return "0"
		}
		return "1"
	})
	return nil
}

var hasInclude = regexp.MustCompile(`\b__has_include\s*\(\s*(["<])([^">\n]+)[">]\s*\)`)

// directive returns the copy's text for an #include, the tokens [i, end) of All.
func (c *copier) directive(s *msl.Structure, i, end int, word string) (string, error) {
	refuse := func(err error) string {
		name := "mlxg_refused_" + strconv.Itoa(len(c.refused)) + "."
		c.refused = append(c.refused, refusal{name, err})
		return "#include \"" + name + "\""
	}
	if word == "include_next" || word == "embed" {
		return refuse(msl.Errorf(s.Position(s.All[i]), "#%s is not part of Metal; write #include \"name.h\" for a file "+
			"of yours", word)), nil
	}
	for _, header := range s.All[i:end] {
		if header.Kind != msl.HeaderName {
			continue
		}
		name := strings.Trim(header.Text, `<>"`)
		if msl.IsMetalHeader(name) {
			return "", nil
		}
		found, text, err := c.find(s.File(), strings.TrimRight(header.Text, `">`))
		if err != nil {
			return refuse(&msl.Error{Position: s.Position(header), Message: header.Text + " " + err.Error()}), nil
		}
		number, known := c.numbers[found]
		if !known {
			number = len(c.files)
			if err := c.copy(found, text, nil); err != nil {
				return "", err
			}
		}
		return "#" + word + " \"" + fileName(number) + "\"", nil
	}
	return refuse(msl.Errorf(s.Position(s.All[i]), "#%s needs a name in quotes, such as \"name.h\"; a macro cannot "+
		"stand for it", word)), nil
}

// find returns the name and text of an included file. header begins with the quote or angle bracket.
func (c *copier) find(from, header string) (name, text string, err error) {
	quoted, header := header[0] == '"', header[1:]
	if path.IsAbs(header) {
		return "", "", errText("is an absolute path; write it relative to the folder of the including file")
	}
	var folders []string
	if quoted {
		folders = append(folders, path.Dir(from))
	}
	for _, folder := range append(folders, c.include...) {
		name := path.Join(folder, header)
		if _, known := c.numbers[name]; known {
			return name, "", nil
		}
		info, statErr := fs.Stat(c.fsys, name)
		if statErr == nil && !info.Mode().IsRegular() {
			return "", "", errText("is not a regular file: devices, pipes and folders cannot be included")
		}
		src, readErr := fs.ReadFile(c.fsys, name)
		if statErr == nil && readErr == nil {
			return name, string(src), nil
		}
		if err == nil {
			err = readErr
		}
	}
	advice := "its path is relative to the folder of the including file or to a folder of --include"
	switch {
	case err == nil:
		return "", "", errText("is not a header of Metal; write #include \"" + header + "\" for a file of yours, or " +
			"name its folder with --include")
	case !fs.ValidPath(path.Join(path.Dir(from), header)):
		return "", "", errText("cannot be read: " + err.Error() + "; it must lie in the file system that the shader " +
			"is loaded from")
	}
	return "", "", errText("cannot be read: " + err.Error() + "; " + advice)
}

// errText is the end of a message about an included file.
type errText string

func (e errText) Error() string { return string(e) }
