package remedy

// Task is a remedy, and all that it is for.
type Task struct {
	Remedy
	For []string
}

// TaskList gathers remedies, each once, in the order in which they come: Act are for a person
// to do, Wait need no more than time. The zero value is empty.
type TaskList struct {
	Act, Wait []Task

	indexes map[Remedy]int
}

// AddRemedy adds a remedy for something; nil is none.
func (l *TaskList) AddRemedy(name string, do *Remedy) {
	if do == nil {
		return
	}
	list := &l.Act
	if do.Wait {
		list = &l.Wait
	}
	if l.indexes == nil {
		l.indexes = map[Remedy]int{}
	}
	at, known := l.indexes[*do]
	if !known {
		at = len(*list)
		l.indexes[*do], *list = at, append(*list, Task{Remedy: *do})
	}
	(*list)[at].For = append((*list)[at].For, name)
}
