package corpus

func mlxCases() []launchCase { return nil }
