package main

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

//go:embed opticks.txt
var opticks string

// corpus is a text as numbers of letters.
type corpus struct {
	letters []byte // by their numbers
	train   []int32
	held    []int32 // for validation, the end of the text
}

func newCorpus(text string) corpus {
	c := corpus{letters: []byte(text)}
	slices.Sort(c.letters)
	c.letters = slices.Compact(c.letters)
	ids, err := c.encode(text)
	if err != nil {
		panic(err) // every letter is there
	}
	cut := len(ids) * 9 / 10
	c.train, c.held = ids[:cut], ids[cut:]
	return c
}

func (c corpus) encode(text string) ([]int32, error) {
	ids := make([]int32, len(text))
	for i := range len(text) {
		id, known := slices.BinarySearch(c.letters, text[i])
		if !known {
			return nil, fmt.Errorf("the letter %q does not occur in the corpus", text[i])
		}
		ids[i] = int32(id)
	}
	return ids, nil
}

func (c corpus) decode(ids []int32) string {
	text := make([]byte, len(ids))
	for i, id := range ids {
		text[i] = c.letters[id]
	}
	return string(text)
}

// batch draws passages from ids: the letters, and for each the one that follows it,
// (batch, length).
func batch(r *rand.Rand, ids []int32, size, length int) (inputs, targets *mlxc.Array) {
	var in, out []int32
	for range size {
		at := r.IntN(len(ids) - length)
		in = append(in, ids[at:at+length]...)
		out = append(out, ids[at+1:at+length+1]...)
	}
	return mlxc.FromSlice(in, size, length), mlxc.FromSlice(out, size, length)
}
