package main

import (
	"math/rand/v2"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// BenchmarkStep runs a compiled step of the command's default size.
func BenchmarkStep(b *testing.B) {
	text := newCorpus(opticks)
	for _, g := range []gradients{ours, builtIn} {
		b.Run(g.name, func(b *testing.B) {
			c := small(text, g)
			c.width, c.heads, c.batch, c.length = 64, 4, 8, 64
			in := stepInput{}
			var err error
			if in.training, err = c.start(); err != nil {
				b.Fatal(err)
			}
			in.Inputs, in.Targets = batch(rand.New(rand.NewPCG(1, 1)), text.train, c.batch, c.length)
			step := tree.Compile(c.step)
			defer step.Close()
			once := func() {
				out, err := step.Call(in)
				if err == nil {
					err = tree.Eval(out)
				}
				if err == nil {
					err = tree.Free(out)
				}
				if err != nil {
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
