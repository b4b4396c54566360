### Smallest example
papers
