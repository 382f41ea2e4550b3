package mlxc

import (
	"math/bits"
	"math/rand/v2"
	"sync"
)

// keySequence generates the keys for draws with a nil key. After RandomSeed they are the keys that Python draws after
// mx.random.seed. Its state is a key in RandomKey's integer form. MLX itself keeps a sequence per OS thread, but
// goroutines move between threads.
type keySequence struct {
	sync.Mutex
	state uint64
}

var sequence = keySequence{state: rand.Uint64()}

// next splits the state as MLX's random::split does, into the next state and a key.
func (s *keySequence) next() uint64 {
	s.Lock()
	defer s.Unlock()
	// MLX draws the four words as two blocks, and returns the first words of both blocks, then the second words.
	a, c := threefry(s.state, 0, 2)
	b, d := threefry(s.state, 1, 3)
	s.state = uint64(a)<<32 | uint64(b)
	return uint64(c)<<32 | uint64(d)
}

// threefry is Threefry-2x32 with 20 rounds, from "Parallel random numbers: as easy as 1, 2, 3" (Salmon et al., 2011).
func threefry(key uint64, x, y uint32) (uint32, uint32) {
	const parity = 0x1BD11BDA
	rotations := [2][4]int{{13, 15, 26, 6}, {17, 29, 16, 24}}
	k := [3]uint32{uint32(key >> 32), uint32(key)}
	k[2] = k[0] ^ k[1] ^ parity
	x, y = x+k[0], y+k[1]
	for i := range 5 {
		for _, r := range rotations[i%2] {
			x += y
			y = bits.RotateLeft32(y, r) ^ x
		}
		x, y = x+k[(i+1)%3], y+k[(i+2)%3]+uint32(i)+1
	}
	return x, y
}
