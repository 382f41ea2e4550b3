package toolchain

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Refuse records in the cache that the compiler rejects the text with a key, so that the next process need not compile
// it to learn that. It records errors in the text only: a compiler that lacks memory may succeed next time.
func Refuse(key, output string) {
	if !ownError.MatchString(output) || otherError.MatchString(output) {
		return
	}
	if dir, err := CacheDir(); err == nil {
		writeAtomically(filepath.Join(dir, key+".refused"), Hash(key, output)+"\n"+output)
	}
}

// Refused returns what the compiler wrote when it rejected the text with a key. ok is false if it is not known to.
func Refused(key string) (output string, ok bool) {
	dir, err := CacheDir()
	if err != nil {
		return "", false
	}
	text, err := readKept(filepath.Join(dir, key+".refused"))
	if err != nil {
		return "", false
	}
	sum, output, _ := strings.Cut(string(text), "\n")
	return output, sum == Hash(key, output)
}

var (
	ownError   = regexp.MustCompile(`(?m)^[^:\n]+:\d+(:\d+)?: error: `)
	otherError = regexp.MustCompile(`memory exhausted|out of memory|internal compiler error|[Kk]illed`)
)

// Alternative returns clang++ if [FindToolchain] returns another compiler that CXX does not name, and nil if there is
// none.
func Alternative() *Toolchain {
	if os.Getenv("CXX") != "" {
		return nil
	}
	first, err := FindToolchain()
	if err != nil || first.Clang() {
		return nil
	}
	t, err := NewToolchain("clang++")
	if err != nil {
		return nil
	}
	return t
}
