package corpus

func ggmlCases() []launchCase { return nil }
