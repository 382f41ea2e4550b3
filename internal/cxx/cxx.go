// Package cxx reads the environment variable CXX, which names a C++ compiler.
package cxx

import (
	"fmt"
	"os"
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
