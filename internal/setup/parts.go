package setup

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// partsOfLibrary is the number of translation units of a library. Each unit includes half of the source files. MLX's
// headers are then parsed twice instead of once per file, and compiling takes a third of the time. The number does not
// depend on the cores, so that all machines compile the same units.
const partsOfLibrary = 2

// addUnits adds the sources of libmlxg and the parts of both libraries to the patched sources of mlx-c.
func (t sourceTree) addUnits(sources fs.FS) error {
	if err := t.addLibmlxg(sources); err != nil {
		return err
	}
	t.addParts("libmlxc", "mlx/c/")
	t.addParts("libmlxg", libmlxgFolder)
	return nil
}

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
