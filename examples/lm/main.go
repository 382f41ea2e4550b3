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
	var c config
	source := flags.String("gradients", "ours", "`source` of the gradients: ours, mlx or both")
	picture := flags.String("png", "loss.png", "`file` of the loss curve")
	checkpoint := flags.String("checkpoint", "", "safetensors `file` to continue from if it exists,\n"+
		"and to write every -save-every steps, at the end and on an interrupt")
	flags.IntVar(&c.saveEvery, "save-every", 100, "`number` of steps between checkpoints")
	prompt := flags.String("prompt", "The Rays of Light ", "beginning of the generated `text`")
	letters := flags.Int("letters", 400, "`number` of letters to generate")
	temperature := flags.Float64("temperature", 0.7, "sampling temperature; 0 takes the most likely letter")
	flags.IntVar(&c.steps, "steps", 1000, "`number` of training steps")
	flags.IntVar(&c.width, "width", 64, "width of the model, a multiple of twice the number of heads")
	flags.IntVar(&c.heads, "heads", 4, "`number` of attention heads")
	flags.IntVar(&c.layers, "layers", 2, "`number` of layers")
	flags.IntVar(&c.batch, "batch", 8, "`number` of passages per step")
	flags.IntVar(&c.length, "length", 64, "`number` of letters in a passage, the context of the model")
	flags.Float64Var(&c.rate, "rate", 3e-3, "largest learning rate")
	flags.Uint64Var(&c.seed, "seed", 1, "seed of the random numbers")
	parallel := flags.Bool("data-parallel", false, "divide each batch among the processes that mlxgrad launch started")
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

	if *parallel {
		if err := c.join(); err != nil {
			return err
		}
		if c.group.Rank() != 0 {
			out = io.Discard
		}
	}
	var curves []curve
	var trained params
	for _, g := range all {
		c.gradients = g
		var one curve
		var err error
		if trained, one, err = c.fit(ctx, text, *checkpoint, out); err != nil {
			return err
		}
		if len(one.losses) > 0 { // there are none if the checkpoint is of the last step
			curves = append(curves, one)
		}
	}
	if !c.isFirst() {
		return nil
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

// fit trains from the start or from a checkpoint, and validates. It prints its progress.
func (c config) fit(ctx context.Context, text corpus, checkpoint string, out io.Writer) (params, curve, error) {
	fail := func(err error) (params, curve, error) { return params{}, curve{}, err }
	t, err := c.start()
	if err != nil {
		return fail(err)
	}
	defer t.Close()
	if err := c.resume(checkpoint, t); err != nil {
		return fail(err)
	}
	begin, err := done(t)
	if err != nil {
		return fail(err)
	}
	losses, err := c.trainWithProgress(ctx, text, t, checkpoint, out)
	if err != nil {
		return fail(err)
	}
	validation, err := c.validate(t.State.Params, text)
	if err != nil {
		return fail(err)
	}
	fmt.Fprintf(out, "validation loss: %.3f\n\n", validation)
	return t.State.Params, curve{c.name, begin, losses}, nil
}

// trainWithProgress trains, prints the progress, and writes checkpoints if there is a file name. It returns the loss of
// each step.
func (c config) trainWithProgress(
	ctx context.Context, text corpus, t *trainer, checkpoint string, out io.Writer,
) (losses []float64, err error) {
	var first time.Time // the end of the first step, which compiles
	err = c.train(ctx, text, t, func(step int, loss float64) error {
		if losses = append(losses, loss); len(losses) == 1 {
			first = time.Now()
		}
		if (step+1)%max(c.steps/20, 1) == 0 {
			fmt.Fprintf(out, "%s gradients, step %d of %d: loss %.3f\n", c.name, step+1, c.steps, loss)
		}
		if checkpoint != "" && (step+1)%c.saveEvery == 0 {
			return c.save(checkpoint, t, text)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%s gradients, loss %s\n", c.name, sparkline(losses, 60))
	if n := len(losses) - 1; n > 0 {
		rate := float64(n) / time.Since(first).Seconds()
		fmt.Fprintf(out, "%.2f steps and %.0f letters per second\n", rate, rate*float64(c.batch*c.length))
	}
	if checkpoint != "" {
		if err := c.save(checkpoint, t, text); err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "wrote the checkpoint %s\n", checkpoint)
	}
	return losses, nil
}

// check returns an error if the settings are invalid.
func (c config) check(text corpus) error {
	switch {
	case c.heads < 1:
		return fmt.Errorf("-heads is %d; it must be positive", c.heads)
	case c.width < 1 || c.width%(2*c.heads) != 0:
		return fmt.Errorf("-width is %d; it must be a positive multiple of %d, twice the number of heads",
			c.width, 2*c.heads)
	case c.layers < 1 || c.steps < 1 || c.batch < 1 || c.saveEvery < 1:
		return fmt.Errorf("-layers, -steps, -batch and -save-every are %d, %d, %d and %d; they must be positive",
			c.layers, c.steps, c.batch, c.saveEvery)
	case c.length < 1 || c.length >= len(text.validation):
		return fmt.Errorf("-length is %d; it must be positive and below %d, the number of letters for validation",
			c.length, len(text.validation))
	}
	return nil
}
