package advice

// Task is a remedy, and all that it is for.
type Task struct {
	Remedy
	For []string
}

// ToDo gathers remedies, each once, in the order in which they come: Act are for a person
// to do, Wait need no more than time. The zero value is empty.
type ToDo struct {
	Act, Wait []Task

	at map[Remedy]int
}

// Note adds a remedy for something; nil is none.
func (l *ToDo) Note(name string, do *Remedy) {
	if do == nil {
		return
	}
	list := &l.Act
	if do.Wait {
		list = &l.Wait
	}
	if l.at == nil {
		l.at = map[Remedy]int{}
	}
	at, known := l.at[*do]
	if !known {
		at = len(*list)
		l.at[*do], *list = at, append(*list, Task{Remedy: *do})
	}
	(*list)[at].For = append((*list)[at].For, name)
}
