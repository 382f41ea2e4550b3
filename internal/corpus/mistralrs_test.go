package corpus

func mistralrsCases() []launchCase { return nil }
