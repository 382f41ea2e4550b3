package corpus

func candleCases() []launchCase { return nil }
