### Work it out
papers
