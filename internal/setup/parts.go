package setup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// partsOfLibrary is the number of parts that a library is compiled in. A part includes half of the library's
// source files: with MLX's headers read twice and not for each file, a library takes a third of the time. The number
// is not that of the machine's cores, so that every machine compiles the same.
const partsOfLibrary = 2

// addParts adds the parts of a library, whose source files are in folder, to the tree.
func (t sourceTree) addParts(library, folder string) {
	sources := slices.DeleteFunc(t.names(".cpp"), func(name string) bool { return !strings.HasPrefix(name, folder) })
	slices.SortStableFunc(sources, func(x, y string) int { return cmp.Compare(len(t[y]), len(t[x])) })
	var text [partsOfLibrary]strings.Builder
	var size [partsOfLibrary]int
	for _, source := range sources {
		smallest := slices.Index(size[:], slices.Min(size[:]))
		size[smallest] += len(t[source])
		fmt.Fprintf(&text[smallest], "#include \"%s\"\n", source)
	}
	for i, name := range t.parts(library) {
		t[name] = []byte(text[i].String())
	}
}

// parts lists the parts of a library.
func (t sourceTree) parts(library string) (parts []string) {
	for i := range partsOfLibrary {
		parts = append(parts, fmt.Sprintf("%s_part%d.cpp", library, i+1))
	}
	return parts
}
