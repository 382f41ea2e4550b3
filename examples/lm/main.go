// Command lm trains a small transformer on the letters of Newton's Opticks and generates text. It is a complete example
// of package ops, the optimizers and parameter trees. README.md describes its use.
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
	context.AfterFunc(ctx, stop) // a second interrupt ends the program
	if err := errors.Join(run(ctx, os.Args[1:], os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "lm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("lm", flag.ContinueOnError)
	c := config{shape: shape{heads: 4}}
	source := flags.String("gradients", "ours", "`source` of the gradients: ours, mlx or both")
	picture := flags.String("png", "loss.png", "`file` of the loss curve")
	checkpoint := flags.String("checkpoint", "", "safetensors `file` to continue from if it exists,\n"+
		"and to write at the end or on an interrupt")
	prompt := flags.String("prompt", "The Rays of Light ", "beginning of the generated `text`")
	letters := flags.Int("letters", 400, "`number` of letters to generate")
	temperature := flags.Float64("temperature", 0.7, "sampling temperature; 0 takes the most likely letter")
	flags.IntVar(&c.steps, "steps", 1000, "`number` of training steps")
	flags.IntVar(&c.width, "width", 64, "width of the model, a multiple of 8")
	flags.IntVar(&c.layers, "layers", 2, "`number` of layers")
	flags.IntVar(&c.batch, "batch", 8, "`number` of passages per step")
	flags.IntVar(&c.length, "length", 64, "`number` of letters in a passage, the context of the model")
	flags.Float64Var(&c.rate, "rate", 3e-3, "largest learning rate")
	flags.Uint64Var(&c.seed, "seed", 1, "seed of the random numbers")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	all, ok := map[string][]gradients{"ours": {ours}, "mlx": {builtIn}, "both": {ours, builtIn}}[*source]
	switch {
	case !ok:
		return fmt.Errorf("-gradients is %q; it must be ours, mlx or both", *source)
	case *checkpoint != "" && len(all) > 1:
		return errors.New("-checkpoint requires a single training: choose -gradients ours or mlx")
	case filepath.Ext(*picture) != ".png":
		return fmt.Errorf("-png is %q; it must end in .png", *picture)
	}
	// Check the output files before the training takes time.
	for _, f := range []struct{ flag, file string }{{"-png", *picture}, {"-checkpoint", *checkpoint}} {
		if info, err := os.Stat(filepath.Dir(f.file)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is %q; its folder must exist", f.flag, f.file)
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
		t, losses, err := c.trainWithProgress(ctx, text, t, out)
		if err != nil {
			return err
		}
		if *checkpoint != "" {
			if err := t.save(*checkpoint); err != nil {
				return err
			}
			fmt.Fprintf(out, "wrote the checkpoint %s\n", *checkpoint)
		}
		validation, err := c.validate(t.Params, text)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "validation loss: %.3f\n\n", validation)
		trained = t.Params
		if len(losses) > 0 { // there are none if the checkpoint is of the last step
			curves = append(curves, curve{g.name, begin, losses})
		}
	}
	if len(curves) > 0 {
		if err := savePNG(*picture, curves); err != nil {
			return fmt.Errorf("writing the loss curve: %w", err)
		}
		fmt.Fprintf(out, "wrote the loss curve %s\n\n", *picture)
	}
	written, err := c.generate(trained, text, *prompt, *letters, *temperature)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, written)
	return nil
}

// trainWithProgress trains with a compiled step and prints its progress.
func (c config) trainWithProgress(
	ctx context.Context, text corpus, t training, out io.Writer,
) (training, []float64, error) {
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
		fmt.Fprintf(out, "%.2f steps per second\n", float64(n)/time.Since(first).Seconds())
	}
	return t, losses, nil
}

// check returns an error if the settings are invalid.
func (c config) check(text corpus) error {
	switch {
	case c.width < 1 || c.width%(2*c.heads) != 0:
		return fmt.Errorf("-width is %d; it must be a positive multiple of %d, twice the number of heads",
			c.width, 2*c.heads)
	case c.layers < 1 || c.steps < 1 || c.batch < 1:
		return fmt.Errorf("-layers, -steps and -batch are %d, %d and %d; they must be positive",
			c.layers, c.steps, c.batch)
	case c.length < 1 || c.length >= len(text.validation):
		return fmt.Errorf("-length is %d; it must be positive and below %d, the number of letters for validation",
			c.length, len(text.validation))
	}
	return nil
}
