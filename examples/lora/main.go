// Command lora fine-tunes a model that it loads from a safetensors file, by adapters of low rank. The model's own
// parameters do not change. README.md describes its use.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

//go:embed gettysburg.txt
var gettysburg string

// config holds the settings of a fine-tuning.
type config struct {
	rank, steps int
	length      int     // letters of a passage
	rate        float64 // the largest learning rate
}

func main() {
	if err := errors.Join(run(os.Args[1:], os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "lora:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("lora", flag.ContinueOnError)
	c := config{length: 64}
	base := flags.String("base", "opticks.safetensors", "`file` of the model, a checkpoint of examples/lm")
	file := flags.String("adapters", "adapters.safetensors", "`file` to write the adapters to")
	flags.IntVar(&c.rank, "rank", 4, "rank of the adapters")
	flags.IntVar(&c.steps, "steps", 100, "`number` of training steps")
	flags.Float64Var(&c.rate, "rate", 1e-3, "largest learning rate")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if c.rank < 1 || c.steps < 1 {
		return fmt.Errorf("-rank and -steps are %d and %d; they must be positive", c.rank, c.steps)
	}
	m, err := loadModel(*base)
	if err != nil {
		return err
	}
	ids, err := m.encode(gettysburg)
	if err != nil {
		return err
	}
	train, rest := ids[:len(ids)*4/5], ids[len(ids)*4/5:]
	frozen, err := count(m.params)
	if err != nil {
		return err
	}
	trained, err := count(m.newAdapters(c.rank))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d frozen parameters, %d of adapters\n", frozen, trained)
	if err := m.print(out, "before", m.newAdapters(c.rank), train, rest, c.length); err != nil {
		return err
	}
	a, err := m.tune(c, train, func(step int, loss float64) {
		if (step+1)%25 == 0 {
			fmt.Fprintf(out, "step %d: loss %.3f\n", step+1, loss)
		}
	})
	if err != nil {
		return err
	}
	if err := a.save(*file); err != nil {
		return err
	}
	if a, err = m.loadAdapters(*file, c.rank); err != nil {
		return err
	}
	return m.print(out, "with "+*file, a, train, rest, c.length)
}

// print prints the losses of the text for training and of the rest.
func (m model) print(out io.Writer, title string, a adapters, train, rest []int32, length int) error {
	trained, err := m.meanLoss(a, train, length)
	if err != nil {
		return err
	}
	unseen, err := m.meanLoss(a, rest, length)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: loss %.3f on the text for training, %.3f on the rest\n", title, trained, unseen)
	return nil
}

// count returns the number of elements of a tree.
func count[T any](t T) (n int, err error) {
	arrays, err := tree.Flatten(t)
	for _, a := range arrays {
		n += a.Size()
	}
	return n, err
}
