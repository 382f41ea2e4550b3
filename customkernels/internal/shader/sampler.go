package shader

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

var addressModes = []string{"clamp_to_edge", "clamp_to_zero", "clamp_to_border", "repeat", "mirrored_repeat"}

// samplerOptions holds the values of each option of a sampler, in Metal's words.
var samplerOptions = []struct {
	name   string
	values []string
}{
	{"coord", []string{"normalized", "pixel"}},
	{"filter", []string{"nearest", "linear"}},
	{"mag_filter", []string{"nearest", "linear"}},
	{"min_filter", []string{"nearest", "linear"}},
	{"address", addressModes},
	{"s_address", addressModes},
	{"t_address", addressModes},
	{"r_address", addressModes},
	{"border_color", []string{"transparent_black", "opaque_black", "opaque_white"}},
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
