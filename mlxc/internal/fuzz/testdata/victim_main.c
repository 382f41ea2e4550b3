int misuse(const char* how);

int main(int argc, char** argv) { return argc == 2 && misuse(argv[1]) == 0 ? 0 : 1; }
