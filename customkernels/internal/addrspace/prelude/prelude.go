// Package prelude holds the declarations of Metal's standard library that the address-space check gives to clang,
// and the names that they declare.
package prelude

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

var (
	//go:embed types.clcpp
	types string
	//go:embed functions.clcpp
	functions string
	//go:embed textures.clcpp
	textures string
)

// Text is C++ for OpenCL that declares Metal's standard library.
var Text = types + functions

// Textures declares textures and samplers. It follows Text.
var Textures = textures

// Macros returns the names of the macros of Metal's library.
var Macros = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#define (\w+)`).FindAllStringSubmatch(Text, -1) {
		names[m[1]] = true
	}
	return names
})

var (
	typePattern     = regexp.MustCompile(`\b(?:struct|enum class|enum) (\w+)|\busing (\w+) =`)
	functionPattern = regexp.MustCompile(`MLXG_(?:UNARY|BINARY|TERNARY|TEST)\((\w+)\)|TYPES\(MLXG_., (\w+)\)|\b(g##\w+|atomic_\w+##name\w*|\w+)\(`)
	comment         = regexp.MustCompile(`//.*`)
)

// Functions returns the names of the functions of Metal's library.
var Functions = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	text := comment.ReplaceAllString(Text, "")
	for _, m := range functionPattern.FindAllStringSubmatch(text, -1) {
		name := m[1] + m[2] + m[3]
		if rest, ok := strings.CutPrefix(name, "g##"); ok {
			names["simd"+rest], names["quad"+rest] = true, true
		} else if !strings.HasPrefix(name, "mlxg_") {
			names[name] = true
		}
	}
	for _, m := range typePattern.FindAllStringSubmatch(text, -1) {
		delete(names, m[1]+m[2])
	}
	for _, word := range []string{"decltype", "float", "int", "sizeof"} { // keywords
		delete(names, word)
	}
	return names
})
