package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// config holds the fields of config.json that this program uses.
type config struct {
	ModelType         string          `json:"model_type"`
	HiddenAct         string          `json:"hidden_act"`
	VocabSize         int             `json:"vocab_size"`
	HiddenSize        int             `json:"hidden_size"`
	IntermediateSize  int             `json:"intermediate_size"`
	NumHiddenLayers   int             `json:"num_hidden_layers"`
	NumAttentionHeads int             `json:"num_attention_heads"`
	NumKeyValueHeads  int             `json:"num_key_value_heads"`
	HeadDim           int             `json:"head_dim"`
	RMSNormEps        float32         `json:"rms_norm_eps"`
	AttentionBias     bool            `json:"attention_bias"`
	MLPBias           bool            `json:"mlp_bias"`
	TieWordEmbeddings *bool           `json:"tie_word_embeddings"`
	EOSTokenID        tokenIDs        `json:"eos_token_id"`
	RopeTheta         float64         `json:"rope_theta"`
	RopeScaling       *ropeScaling    `json:"rope_scaling"`
	RopeParameters    *ropeScaling    `json:"rope_parameters"` // replaces both in transformers 5
	Quantization      json.RawMessage `json:"quantization"`
}

// ropeScaling describes how positions become angles.
type ropeScaling struct {
	Type           string  `json:"rope_type"`
	OldType        string  `json:"type"` // the name of rope_type in older files
	Theta          float64 `json:"rope_theta"`
	Factor         float64 `json:"factor"`
	LowFreqFactor  float64 `json:"low_freq_factor"`
	HighFreqFactor float64 `json:"high_freq_factor"`
	OriginalLength float64 `json:"original_max_position_embeddings"`
}

// tokenIDs is a list of ids, which in JSON may be a single number.
type tokenIDs []int32

func (t *tokenIDs) UnmarshalJSON(data []byte) error {
	var one *int32
	if json.Unmarshal(data, &one) != nil {
		return json.Unmarshal(data, (*[]int32)(t))
	}
	if *t = nil; one != nil {
		*t = tokenIDs{*one}
	}
	return nil
}

// readConfig reads config.json of a model's folder, sets defaults, and checks the values.
func readConfig(dir string) (c config, err error) {
	file := filepath.Join(dir, "config.json")
	if err := readJSON(file, &c); err != nil {
		return c, err
	}
	if c.NumKeyValueHeads == 0 {
		c.NumKeyValueHeads = c.NumAttentionHeads
	}
	if c.HeadDim == 0 && c.NumAttentionHeads > 0 {
		c.HeadDim = c.HiddenSize / c.NumAttentionHeads
	}
	if c.RopeParameters == nil {
		c.RopeParameters = &ropeScaling{}
		if c.RopeScaling != nil {
			c.RopeParameters = c.RopeScaling
		}
	}
	if r := c.RopeParameters; r.Type == "" {
		r.Type = r.OldType
	}
	// Newer models also list the ids in generation_config.json, where a chat model has more of them.
	var generation struct {
		EOSTokenID tokenIDs `json:"eos_token_id"`
	}
	switch err := readJSON(filepath.Join(dir, "generation_config.json"), &generation); {
	case err == nil:
		c.EOSTokenID = append(c.EOSTokenID, generation.EOSTokenID...)
	case !errors.Is(err, os.ErrNotExist):
		return c, err
	}
	if err := c.check(); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

func readJSON(file string, v any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func (c config) check() error {
	sizes := []struct {
		name string
		size int
	}{
		{"vocab_size", c.VocabSize},
		{"hidden_size", c.HiddenSize},
		{"intermediate_size", c.IntermediateSize},
		{"num_hidden_layers", c.NumHiddenLayers},
		{"num_attention_heads", c.NumAttentionHeads},
		{"num_key_value_heads", c.NumKeyValueHeads},
		{"head_dim", c.HeadDim},
	}
	for _, s := range sizes {
		if s.size < 1 || s.size > math.MaxInt32 {
			return fmt.Errorf("%s is %d; it must be positive", s.name, s.size)
		}
	}
	switch {
	case c.ModelType != "llama":
		return fmt.Errorf("model_type is %q; it must be llama", c.ModelType)
	case c.HiddenAct != "silu":
		return fmt.Errorf("hidden_act is %q; it must be silu", c.HiddenAct)
	case !(c.RMSNormEps > 0):
		return fmt.Errorf("rms_norm_eps is %v; it must be positive", c.RMSNormEps)
	case c.Quantization != nil:
		return errors.New("the model is quantized; use the model with float16, bfloat16 or float32 weights")
	case c.NumAttentionHeads%c.NumKeyValueHeads != 0:
		return fmt.Errorf("num_attention_heads is %d; it must be a multiple of num_key_value_heads, %d",
			c.NumAttentionHeads, c.NumKeyValueHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("head_dim is %d; it must be even", c.HeadDim)
	}
	_, err := c.rope()
	return err
}

// theta returns the base of the rotary frequencies.
func (c config) theta() float64 {
	for _, theta := range []float64{c.RopeParameters.Theta, c.RopeTheta} {
		if theta != 0 {
			return theta
		}
	}
	return 10000
}

// rope returns the options of the rotary position embedding.
func (c config) rope() (mlxc.RoPEConfig, error) {
	r, theta := c.RopeParameters, c.theta()
	if !(theta > 0) {
		return mlxc.RoPEConfig{}, fmt.Errorf("rope_theta is %v; it must be positive", theta)
	}
	switch r.Type {
	case "", "default":
		return mlxc.RoPEConfig{Base: float32(theta)}, nil
	case "linear":
		if !(r.Factor > 0) {
			return mlxc.RoPEConfig{}, fmt.Errorf("factor of rope_scaling is %v; it must be positive", r.Factor)
		}
		return mlxc.RoPEConfig{Base: float32(theta), Scale: float32(1 / r.Factor)}, nil
	case "llama3":
		values := []float64{r.Factor, r.LowFreqFactor, r.HighFreqFactor - r.LowFreqFactor, r.OriginalLength}
		if slices.ContainsFunc(values, func(v float64) bool { return !(v > 0) }) {
			return mlxc.RoPEConfig{}, fmt.Errorf("rope_scaling has factor %v, low_freq_factor %v, high_freq_factor %v and "+
				"original_max_position_embeddings %v; they must be positive, and high_freq_factor the larger of the two",
				r.Factor, r.LowFreqFactor, r.HighFreqFactor, r.OriginalLength)
		}
		return mlxc.RoPEConfig{Freqs: mlxc.FromSlice(r.periods(theta, c.HeadDim))}, nil
	}
	return mlxc.RoPEConfig{}, fmt.Errorf("rope_type is %q; it must be default, linear or llama3", r.Type)
}

// periods returns the reciprocal frequencies of Llama 3.1. Waves that fit high_freq_factor times into the original length
// stay as they are. Waves that fit less than low_freq_factor times become `factor` times as long, and in between the
// frequency is interpolated.
func (r ropeScaling) periods(theta float64, headDim int) []float32 {
	periods := make([]float32, headDim/2)
	for i := range periods {
		period := math.Pow(theta, float64(2*i)/float64(headDim))
		waves := r.OriginalLength / (2 * math.Pi * period)
		keep := min(max((waves-r.LowFreqFactor)/(r.HighFreqFactor-r.LowFreqFactor), 0), 1)
		periods[i] = float32(period / (keep + (1-keep)/r.Factor))
	}
	return periods
}
