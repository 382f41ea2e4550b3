// Command llama fine-tunes a Llama model by LoRA and generates text with it. README.md describes its use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := errors.Join(run(ctx, os.Args[1:], os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "llama:", err)
		os.Exit(1)
	}
}

// options holds the command's flags.
type options struct {
	dir, hub, text, adapter, prompt string
	dtype                           mlxc.DType
	tokens                          int // to generate
	temperature                     float64
	training
	settings
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("llama", flag.ContinueOnError)
	flags.StringVar(&o.dir, "model", "", "`folder` of the model")
	flags.StringVar(&o.hub, "hub", "", "`name` of a model to download from the Hugging Face hub, such as owner/model")
	flags.Func("dtype", "convert the weights to `dtype`: float32, float16 or bfloat16", func(name string) error {
		for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16} {
			if d.String() == name {
				o.dtype = d
				return nil
			}
		}
		return errors.New("it must be float32, float16 or bfloat16")
	})
	flags.StringVar(&o.text, "text", "", "`file` with the text for training; without it, the model only generates")
	flags.StringVar(&o.adapter, "adapter", "", "`folder` of the adapter, which training writes and continues")
	flags.IntVar(&o.steps, "steps", 100, "`number` of training steps, with those of an earlier run")
	flags.IntVar(&o.batch, "batch", 4, "passages in a step")
	flags.IntVar(&o.length, "length", 128, "tokens in a passage")
	flags.IntVar(&o.saveEvery, "save-every", 100, "steps between two checkpoints")
	flags.Float64Var(&o.rate, "rate", 1e-4, "learning rate")
	flags.IntVar(&o.LoRA.Rank, "rank", 8, "rank of the adapter")
	flags.Float64Var(&o.LoRA.Scale, "scale", 20, "factor of the adapter")
	flags.IntVar(&o.NumLayers, "layers", -1, "`number` of layers with an adapter, from the last; -1 for all")
	keys := flags.String("keys", "self_attn.q_proj,self_attn.v_proj", "`matrices` of a layer with an adapter")
	flags.StringVar(&o.prompt, "prompt", "", "begin of the generated text")
	flags.IntVar(&o.tokens, "tokens", 50, "`number` of tokens to generate")
	flags.Float64Var(&o.temperature, "temperature", 0, "randomness of the generated text")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the random numbers")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.LoRA.Keys, o.FineTuneType, o.Model = strings.Split(*keys, ","), "lora", o.dir+o.hub
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: the command takes only flags", flags.Arg(0))
	case (o.dir == "") == (o.hub == ""):
		return o, errors.New("name the model by -model or -hub")
	case o.text != "" && o.adapter == "":
		return o, errors.New("-text needs -adapter, the folder to write")
	case o.steps < 1 || o.batch < 1 || o.length < 1 || o.saveEvery < 1:
		return o, fmt.Errorf("-steps, -batch, -length and -save-every are %d, %d, %d and %d; they must be positive",
			o.steps, o.batch, o.length, o.saveEvery)
	case o.tokens < 0 || !(o.temperature >= 0):
		return o, fmt.Errorf("-tokens and -temperature are %d and %v; they must not be negative", o.tokens, o.temperature)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if o.hub != "" {
		if o.dir, err = download(o.hub); err != nil {
			return err
		}
	}
	p := program{options: o, out: out}
	if p.tokenizer, err = loadTokens(o.dir); err != nil {
		return err
	}
	if p.model, err = loadModel(o.dir, o.dtype); err != nil {
		return err
	}
	switch {
	case o.text != "":
		return p.tune(ctx)
	case o.adapter != "":
		a, err := p.model.loadAdapters(o.adapter)
		if err != nil {
			return err
		}
		return p.write(a)
	}
	return p.write(adapters{})
}

// program holds the loaded model.
type program struct {
	options
	model     *model
	tokenizer *tokens
	out       io.Writer
}

// tune trains an adapter on the first nine tenths of the text. Before and after, it prints the losses and generates.
func (p program) tune(ctx context.Context) error {
	text, err := os.ReadFile(p.text)
	if err != nil {
		return err
	}
	ids, err := p.tokenizer.encode(string(text))
	if err != nil {
		return err
	}
	train, rest := ids[:len(ids)*9/10], ids[len(ids)*9/10:]
	if len(rest) <= p.length {
		return fmt.Errorf("%s has %d tokens; it must have more than %d, ten passages of -length", p.text, len(ids), 10*p.length)
	}
	begin, err := p.model.newAdapters(p.settings, p.seed)
	if err != nil {
		return err
	}
	frozen, err := count(p.model.weights)
	if err != nil {
		return err
	}
	trained, err := count(begin)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%d frozen parameters in %v, %d of the adapter\n", frozen, p.model.head().DType(), trained)
	if err := p.print("before", adapters{}, train, rest); err != nil {
		return err
	}
	err = p.model.train(ctx, p.training, begin, train, p.adapter, func(step int, loss float64) {
		if step%10 == 0 {
			fmt.Fprintf(p.out, "step %d: loss %.3f\n", step, loss)
		}
	})
	if err != nil {
		return err
	}
	end, err := p.model.loadAdapters(p.adapter)
	if err != nil {
		return err
	}
	return p.print("with "+p.adapter, end, train, rest)
}

// print prints the losses of the text for training and of the rest, and a generated text.
func (p program) print(title string, a adapters, train, rest []int32) error {
	known, err := p.model.meanLoss(a, train, p.length)
	if err != nil {
		return err
	}
	unseen, err := p.model.meanLoss(a, rest, p.length)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s: loss %.3f on the text for training, %.3f on the rest\n", title, known, unseen)
	return p.write(a)
}

// write prints the prompt and a generated text.
func (p program) write(a adapters) error {
	ids, err := p.tokenizer.encode(p.prompt)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return errors.New("-prompt is empty, and the model has no token that begins a text")
	}
	more, err := p.model.generate(a, ids, p.tokens, p.temperature, p.seed)
	if err != nil {
		return err
	}
	text, err := p.tokenizer.decode(more)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s%s\n", p.prompt, text)
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
