package main

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkStep runs a compiled step of the command's default size.
func BenchmarkStep(b *testing.B) {
	text := newCorpus(opticks)
	for _, g := range []gradients{ours, builtIn} {
		b.Run(g.name, func(b *testing.B) {
			c := small(text, g)
			c.width, c.heads, c.batch, c.length = 64, 4, 8, 64
			trainer, err := c.start()
			if err != nil {
				b.Fatal(err)
			}
			defer trainer.Close()
			passages := batch(rand.New(rand.NewPCG(1, 1)), text.train, c.batch, c.length, 0, c.batch)
			once := func() {
				if _, err := trainer.Step(passages); err != nil {
					b.Fatal(err)
				}
			}
			once() // compiles
			for b.Loop() {
				once()
			}
		})
	}
}
