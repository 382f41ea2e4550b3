package shader

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

var addressModes = []string{"clamp_to_edge", "clamp_to_zero", "clamp_to_border", "repeat", "mirrored_repeat"}

// samplerOption is an option of a sampler in Metal's words. The index of a value is the number that bytes of
// sampler_state, in host/mlxg_texture.h, hold.
type samplerOption struct {
	name   string
	values []string
	bytes  []int
}

var samplerOptions = []samplerOption{
	{"coord", []string{"normalized", "pixel"}, []int{0}},
	{"filter", []string{"nearest", "linear"}, []int{1, 2}},
	{"mag_filter", []string{"nearest", "linear"}, []int{1}},
	{"min_filter", []string{"nearest", "linear"}, []int{2}},
	{"address", addressModes, []int{3, 4, 5}},
	{"s_address", addressModes, []int{3}},
	{"t_address", addressModes, []int{4}},
	{"r_address", addressModes, []int{5}},
	{"border_color", []string{"transparent_black", "opaque_black", "opaque_white"}, []int{6}},
}

// CheckSampler returns an error if a word is no option of a sampler, such as filter::linear.
func CheckSampler(words []string) error {
	var names []string
	for _, o := range samplerOptions {
		names = append(names, o.name)
	}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "::")
		i := slices.Index(names, name)
		switch {
		case i < 0:
			return fmt.Errorf("%q is not an option of a sampler: write OPTION::VALUE, where OPTION is one of %s", w,
				strings.Join(names, ", "))
		case !slices.Contains(samplerOptions[i].values, value):
			return fmt.Errorf("%q is not a value of a sampler's %s: write %[2]s:: and one of %[3]s", value, name,
				strings.Join(samplerOptions[i].values, ", "))
		}
	}
	return nil
}

// SamplerState returns the options of [CheckSampler] as metalstd's sampler_state.
func SamplerState(words []string) []byte {
	state := make([]byte, 8)
	for _, w := range words {
		name, value, _ := strings.Cut(w, "::")
		i := slices.IndexFunc(samplerOptions, func(o samplerOption) bool { return o.name == name })
		for _, at := range samplerOptions[i].bytes {
			state[at] = byte(slices.Index(samplerOptions[i].values, value))
		}
	}
	return state
}

// Sampler sets the state of a sampler argument. words are options such as filter::linear.
func Sampler(argument string, words []string) Option {
	return func(k *msl.Kernel) (translate.Option, error) {
		if !slices.ContainsFunc(k.Samplers, func(s msl.Sampler) bool { return s.Name == argument }) {
			return nil, fmt.Errorf("there is no sampler argument %s", argument)
		}
		if err := CheckSampler(words); err != nil {
			return nil, err
		}
		var qualified []string
		for _, w := range words {
			qualified = append(qualified, "metal::"+w)
		}
		return translate.SamplerState(argument, strings.Join(qualified, ", ")), nil
	}
}
