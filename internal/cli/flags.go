package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// List adds a flag for several of the allowed values. They are separated by commas, or the flag is repeated. Shells
// complete the values.
func List(c *cobra.Command, p *[]string, name, usage string, allowed []string) {
	addChoices(c, &choices{allowed: allowed, list: p}, name, usage)
}

// Choice adds a flag for one of the allowed values, by default the first.
func Choice(c *cobra.Command, p *string, name, usage string, allowed []string) {
	*p = allowed[0]
	addChoices(c, &choices{allowed: allowed, one: p}, name, usage)
}

func addChoices(c *cobra.Command, value *choices, name, usage string) {
	c.Flags().Var(value, name, usage+": "+strings.Join(value.allowed, ", "))
	if err := c.RegisterFlagCompletionFunc(name, value.complete); err != nil {
		panic(err) // the flag exists
	}
}

// choices is the value of a flag with allowed values, either a list or one word.
type choices struct {
	allowed []string
	list    *[]string
	one     *string
}

// complete returns the words that may replace text. For a list, each allowed value follows the part of text up to the
// last comma.
func (c *choices) complete(_ *cobra.Command, _ []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := ""
	if c.list != nil {
		before = text[:strings.LastIndex(text, ",")+1]
	}
	var found []cobra.Completion
	for _, v := range c.allowed {
		if strings.HasPrefix(before+v, text) {
			found = append(found, before+v)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// Set implements pflag.Value.
func (c *choices) Set(text string) error {
	values := []string{text}
	if c.list != nil {
		values = strings.Split(text, ",")
	}
	for _, v := range values {
		if !slices.Contains(c.allowed, v) {
			return fmt.Errorf("%q is none of %s", v, strings.Join(c.allowed, ", "))
		}
	}
	if c.list != nil {
		*c.list = append(*c.list, values...)
	} else {
		*c.one = text
	}
	return nil
}

// String implements pflag.Value.
func (c *choices) String() string {
	switch {
	case c.list != nil:
		return strings.Join(*c.list, ",")
	case c.one != nil:
		return *c.one
	}
	return "" // pflag calls the method of a zero value to recognize defaults
}

// Type implements pflag.Value. It is the placeholder in help texts.
func (c *choices) Type() string {
	if c.list != nil {
		return "LIST"
	}
	return "WORD"
}

// Files makes shells complete the arguments of a verb with the files that have one of the extensions.
func Files(extensions ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	}
}

// NoArgs refuses arguments of a verb that has none.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// OneArg requires exactly one argument. plural names the arguments in the error, such as "files".
func OneArg(plural string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("there are %d %s; name one", len(args), plural)
		}
		return nil
	}
}
