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

// corpus holds a text whose letters are encoded as ids.
type corpus struct {
	letters    []byte  // the letter of each id
	train      []int32 // the first nine tenths of the text
	validation []int32 // the rest
}

func newCorpus(text string) corpus {
	c := corpus{letters: []byte(text)}
	slices.Sort(c.letters)
	c.letters = slices.Compact(c.letters)
	ids, err := c.encode(text)
	if err != nil {
		panic(err) // c.letters has all letters of the text
	}
	cut := len(ids) * 9 / 10
	c.train, c.validation = ids[:cut], ids[cut:]
	return c
}

func (c corpus) encode(text string) ([]int32, error) {
	ids := make([]int32, len(text))
	for i := range len(text) {
		id, found := slices.BinarySearch(c.letters, text[i])
		if !found {
			return nil, fmt.Errorf("the corpus does not contain the letter %q", text[i])
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

// batch returns random passages of ids: of a batch of the given size, the passages from begin to end.
func batch(r *rand.Rand, ids []int32, size, length, begin, end int) passages {
	var in, out []int32
	for i := range size {
		at := r.IntN(len(ids) - length)
		if begin <= i && i < end {
			in = append(in, ids[at:at+length]...)
			out = append(out, ids[at+1:at+length+1]...)
		}
	}
	return passages{mlxc.FromSlice(in, end-begin, length), mlxc.FromSlice(out, end-begin, length)}
}
