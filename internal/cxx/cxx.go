// Package cxx finds C++ compilers: the one that the environment variable CXX names, and clang on the PATH.
package cxx

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Command returns the words of CXX: the compiler and its arguments. It returns no words if CXX is empty or not set. As
// in the go command, spaces separate words, and a word with spaces is in single or double quotes, without escapes:
//
//	CXX='ccache g++'
//	CXX='"/opt/my tools/g++" -m64'
func Command() ([]string, error) {
	words, err := split(os.Getenv("CXX"))
	if err != nil {
		return nil, fmt.Errorf("CXX=%s: %w", os.Getenv("CXX"), err)
	}
	return words, nil
}

const spaces = " \t\n\r"

func split(text string) (words []string, err error) {
	for text = strings.TrimLeft(text, spaces); text != ""; text = strings.TrimLeft(text, spaces) {
		word := text
		switch quote := text[:1]; quote {
		case `"`, `'`:
			var closed bool
			if word, text, closed = strings.Cut(text[1:], quote); !closed {
				return nil, fmt.Errorf("the quote %s is not closed", quote)
			}
		default:
			if end := strings.IndexAny(text, spaces); end >= 0 {
				word = text[:end]
			}
			text = text[len(word):]
		}
		words = append(words, word)
	}
	return words, nil
}

// OldestClang is the oldest version of clang that is supported, and newestClang the newest whose name FindClang knows.
const (
	OldestClang = 14
	newestClang = 22
)

// FindClang returns the path of the first of these programs of clang on the PATH, such as "clang++", or "". Names
// without a version come first, then names such as "clang++-22", newest first.
func FindClang(programs ...string) string {
	names := slices.Clone(programs)
	for version := newestClang; version >= OldestClang; version-- {
		for _, program := range programs {
			names = append(names, fmt.Sprintf("%s-%d", program, version))
		}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
