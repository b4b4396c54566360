### Depths of sleep
tidy
papers
