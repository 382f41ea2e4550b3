package msl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTokenize(t *testing.T) {
	type token struct {
		kind Kind
		text string
	}
	tests := []struct {
		text string
		want []token
	}{
		{"", nil},
		{" \t\r\n\\\n", nil},
		{"float4 _x1 $a é", []token{
			{Identifier, "float4"},
			{Identifier, "_x1"},
			{Identifier, "$a"},
			{Identifier, "é"},
		}},
		{"1 1.5e-3h .5f 0x1.8p+3 0xbf 1'000u 1.f", []token{
			{Number, "1"},
			{Number, "1.5e-3h"},
			{Number, ".5f"},
			{Number, "0x1.8p+3"},
			{Number, "0xbf"},
			{Number, "1'000u"},
			{Number, "1.f"},
		}},
		{"1..2", []token{{Number, "1..2"}}},
		{"a+=1-b->c...", []token{
			{Identifier, "a"},
			{Punct, "+="},
			{Number, "1"},
			{Punct, "-"},
			{Identifier, "b"},
			{Punct, "->"},
			{Identifier, "c"},
			{Punct, "..."},
		}},
		{"vec<vec<T>>>>=", []token{
			{Identifier, "vec"},
			{Punct, "<"},
			{Identifier, "vec"},
			{Punct, "<"},
			{Identifier, "T"},
			{Punct, ">"},
			{Punct, ">"},
			{Punct, ">>="},
		}},
		{"x[[a]]", []token{
			{Identifier, "x"},
			{Punct, "["},
			{Punct, "["},
			{Identifier, "a"},
			{Punct, "]"},
			{Punct, "]"},
		}},
		{`"a\"b" 'c' '\'' L"x" u8'y'`, []token{{String, `"a\"b"`}, {Char, "'c'"}, {Char, `'\''`}, {String, `L"x"`}, {Char, "u8'y'"}}},
		{`R"x(a"b)y")x" Rx`, []token{{String, `R"x(a"b)y")x"`}, {Identifier, "Rx"}}},
		{"\"open\n'c", []token{{Invalid, "\""}, {Identifier, "open"}, {Invalid, "'"}, {Identifier, "c"}}},
		{"// a\\\nb\nc /* d\n*/ /*", []token{
			{Comment, "// a\\\nb"},
			{Identifier, "c"},
			{Comment, "/* d\n*/"},
			{Invalid, "/*"},
		}},
		{"#include <a/b.h> // c", []token{
			{Punct, "#"},
			{Identifier, "include"},
			{HeaderName, "<a/b.h>"},
			{Comment, "// c"},
		}},
		{"# include \"x\" <y>", []token{{Punct, "#"}, {Identifier, "include"}, {HeaderName, `"x"`}, {Punct, "<"}, {Identifier, "y"}, {Punct, ">"}}},
		{"/**/ # /**/ import \"x\"", []token{{Comment, "/**/"}, {Punct, "#"}, {Comment, "/**/"}, {Identifier, "import"}, {HeaderName, `"x"`}}},
		{"#include <a", []token{{Punct, "#"}, {Identifier, "include"}, {Invalid, "<"}, {Identifier, "a"}}},
		{"a ## b \x00 @ `", []token{
			{Identifier, "a"},
			{Punct, "##"},
			{Identifier, "b"},
			{Invalid, "\x00"},
			{Invalid, "@"},
			{Invalid, "`"},
		}},
	}
	for _, test := range tests {
		var got []token
		for _, tok := range Tokenize(test.text) {
			got = append(got, token{tok.Kind, tok.Text})
		}
		require.Equal(t, test.want, got, "%q", test.text)
	}
}

func TestTokenPositions(t *testing.T) {
	text := "ab /* x\ny */ c\n #define M \\\n  d // e \\\n f\n\tg\n"
	var got []Token
	for _, tok := range Tokenize(text) {
		if tok.Kind != Comment {
			got = append(got, tok)
		}
	}
	require.Equal(t, []Token{
		{Identifier, "ab", 0, 1, 1, 0},
		{Identifier, "c", 13, 2, 6, 0},
		{Punct, "#", 16, 3, 2, 1},
		{Identifier, "define", 17, 3, 3, 1},
		{Identifier, "M", 24, 3, 10, 1},
		{Identifier, "d", 30, 4, 3, 1},
		{Identifier, "g", 43, 6, 2, 0},
	}, got)
}

// requireLossless checks that the tokens and the white space between them are the text, byte for byte.
func requireLossless(t *testing.T, text string) {
	t.Helper()
	at, line, begin := 0, 1, 0
	space := func(gap string) {
		require.Empty(t, strings.Trim(strings.NewReplacer("\\\n", "", "\\\r\n", "").Replace(gap), " \t\r\n\v\f"))
	}
	advance := func(to int) {
		line += strings.Count(text[at:to], "\n")
		if i := strings.LastIndexByte(text[:to], '\n'); i >= 0 {
			begin = i + 1
		}
		at = to
	}
	for _, tok := range Tokenize(text) {
		require.GreaterOrEqual(t, tok.Offset, at)
		space(text[at:tok.Offset])
		advance(tok.Offset)
		require.NotEmpty(t, tok.Text)
		require.Equal(t, text[at:tok.End()], tok.Text)
		require.Equal(t, line, tok.Line)
		require.Equal(t, at-begin+1, tok.Column)
		advance(tok.End())
	}
	space(text[at:])
}

func TestTokenizeLosesNothing(t *testing.T) {
	files, err := filepath.Glob("testdata/*.metal")
	require.NoError(t, err)
	shaders, err := filepath.Glob("../../shaders/*.metal")
	require.NoError(t, err)
	files = append(files, shaders...)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		requireLossless(t, string(text))
	}
}
