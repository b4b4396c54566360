### Status and conditions
papers
