// The lm command trains a tiny transformer on the letters of Newton's Opticks and lets
// it write: a model of this repository's operations, optimiser and trees, from one end
// to the other. README.md beside it says more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second interrupt ends the program
	if err := errors.Join(run(ctx, os.Args[1:], os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "lm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("lm", flag.ContinueOnError)
	c := config{shape: shape{heads: 4}}
	which := flags.String("gradients", "ours", "whose: ours, mlx or both")
	picture := flags.String("png", "loss.png", "where the loss curve goes")
	checkpoint := flags.String("checkpoint", "", "a safetensors file that is written at the end or on an interrupt,\nand from which training goes on if it is there")
	prompt := flags.String("prompt", "The Rays of Light ", "what the generated text begins with")
	letters := flags.Int("letters", 400, "how many to generate")
	temperature := flags.Float64("temperature", 0.7, "of the generated letters; 0 takes the likeliest")
	flags.IntVar(&c.steps, "steps", 1000, "of the training")
	flags.IntVar(&c.width, "width", 64, "of the model, a multiple of 8")
	flags.IntVar(&c.layers, "layers", 2, "of the model")
	flags.IntVar(&c.batch, "batch", 8, "passages a step")
	flags.IntVar(&c.length, "length", 64, "letters a passage, which the model sees at once")
	flags.Float64Var(&c.rate, "rate", 3e-3, "the largest learning rate")
	flags.Uint64Var(&c.seed, "seed", 1, "of the random numbers")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	all, ok := map[string][]gradients{"ours": {ours}, "mlx": {builtIn}, "both": {ours, builtIn}}[*which]
	switch {
	case !ok:
		return fmt.Errorf("-gradients is %q: it must be ours, mlx or both", *which)
	case *checkpoint != "" && len(all) > 1:
		return errors.New("-checkpoint is for one training: choose -gradients ours or mlx")
	case filepath.Ext(*picture) != ".png":
		return fmt.Errorf("-png is %q: its name must end in .png", *picture)
	}
	// What is written after the training is worth a look before it.
	for _, f := range []struct{ flag, file string }{{"-png", *picture}, {"-checkpoint", *checkpoint}} {
		if info, err := os.Stat(filepath.Dir(f.file)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is %q: its folder must be there", f.flag, f.file)
		}
	}
	text := newCorpus(opticks)
	c.shape.letters = len(text.letters)
	if err := c.check(text); err != nil {
		return err
	}
	if _, err := text.encode(*prompt); err != nil {
		return fmt.Errorf("-prompt: %w", err)
	}

	var curves []curve
	var trained params
	for _, g := range all {
		c.gradients = g
		t, err := c.resume(*checkpoint)
		if err != nil {
			return err
		}
		begin, err := t.done()
		if err != nil {
			return err
		}
		t, losses, err := c.trainAloud(ctx, text, t, out)
		if err != nil {
			return err
		}
		if *checkpoint != "" {
			if err := t.save(*checkpoint); err != nil {
				return err
			}
			fmt.Fprintf(out, "the checkpoint is in %s\n", *checkpoint)
		}
		held, err := c.validate(t.Params, text)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "loss on text that was held back: %.3f\n\n", held)
		trained = t.Params
		if len(losses) > 0 { // not if the checkpoint was that of the end
			curves = append(curves, curve{g.name, begin, losses})
		}
	}
	if len(curves) > 0 {
		if err := savePNG(*picture, curves); err != nil {
			return fmt.Errorf("the loss curve: %w", err)
		}
		fmt.Fprintf(out, "the loss curve is in %s\n\n", *picture)
	}
	written, err := c.generate(trained, text, *prompt, *letters, *temperature)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, written)
	return nil
}

// trainAloud trains with a compiled step, and tells how it goes.
func (c config) trainAloud(ctx context.Context, text corpus, t training, out io.Writer) (training, []float64, error) {
	step := tree.Compile(c.step)
	defer step.Close()
	var first time.Time // the end of the first step, which compiles
	t, losses, err := c.train(ctx, text, t, step.Call, func(step int, loss float64) {
		if first.IsZero() {
			first = time.Now()
		}
		if (step+1)%max(c.steps/20, 1) == 0 {
			fmt.Fprintf(out, "%s gradients, step %d of %d: loss %.3f\n", c.name, step+1, c.steps, loss)
		}
	})
	if err != nil {
		return t, nil, err
	}
	fmt.Fprintf(out, "%s gradients, loss %s\n", c.name, sparkline(losses, 60))
	if n := len(losses) - 1; n > 0 {
		fmt.Fprintf(out, "%.2f steps a second\n", float64(n)/time.Since(first).Seconds())
	}
	return t, losses, nil
}

// check looks at what was asked for, before time is spent on it.
func (c config) check(text corpus) error {
	switch {
	case c.width < 1 || c.width%(2*c.heads) != 0:
		return fmt.Errorf("-width is %d: it must be a multiple of %d, two for each head", c.width, 2*c.heads)
	case c.layers < 1 || c.steps < 1 || c.batch < 1:
		return fmt.Errorf("-layers, -steps and -batch are %d, %d and %d: they must be positive", c.layers, c.steps, c.batch)
	case c.length < 1 || c.length >= len(text.held):
		return fmt.Errorf("-length is %d: it must be positive and below the %d letters held back", c.length, len(text.held))
	}
	return nil
}
