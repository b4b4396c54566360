package scaling_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/fleet/scaling"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// kind parses "slack=3 limit=10 sizes=1,2 min=1 max=4 expected=6 name=dev multi blocked unknown
// reserve=2". The default name is std.
func kind(text string) scaling.Type {
	t := scaling.Type{Name: "std", Sizes: []int{1, 2}, Expected: 6}
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "name":
			t.Name = value
		case "slack":
			t.Slack = number(value)
		case "limit":
			t.Limit = ptr(number(value))
		case "min":
			t.MinPlanes = number(value)
		case "max":
			t.MaxPlanes = ptr(number(value))
		case "expected":
			t.Expected = number(value)
		case "multi":
			t.MultiZone = true
		case "blocked":
			t.Blocked = "there is no pool"
		case "unknown":
			t.Unknown = "there is no InstanceType std"
		case "reserve":
			t.Reserved = scaling.Reserved{Count: number(value), Size: "x1", Units: 1}
		case "sizes":
			t.Sizes = nil
			for n := range strings.SplitSeq(value, ",") {
				t.Sizes = append(t.Sizes, number(n))
			}
		default:
			panic("kind " + word)
		}
	}
	return t
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func ptr(n int) *int { return &n }

// world is a snapshot under construction.
type world struct{ scaling.Snapshot }

// region returns a world with these types, separated by ";".
func region(types string) *world {
	w := &world{}
	w.Now = noon
	w.Region.Up = scaling.ScaleUp{Mode: scaling.Auto, MaxInFlight: 1, Timeout: 2 * time.Hour, Backoff: 10 * time.Minute}
	w.Region.Down = scaling.ScaleDown{Mode: scaling.Auto}
	for text := range strings.SplitSeq(types, ";") {
		w.Region.Types = append(w.Region.Types, kind(text))
	}
	return w
}

// planes parses "a:10-4 b:coming=6 c:doubted=6 d:10+silent": a Ready data plane with ten units of
// std of which four are used, one on its way that will have six, and so on. The first is the
// oldest.
func (w *world) planes(text string) *world {
	for i, word := range strings.Fields(text) {
		name, rest, _ := strings.Cut(word, ":")
		first, marks, _ := strings.Cut(rest, "+")
		phase, units, has := strings.Cut(first, "=")
		if !has {
			phase, units = "ready", first
		}
		most, used, _ := strings.Cut(units, "-")
		p := scaling.Plane{
			Name: name, Created: noon.Add(time.Duration(i-100) * time.Minute), Since: noon.Add(time.Duration(i-50) * time.Minute),
			Phase: phases[phase], Managed: true, Rooms: []scaling.Room{{Type: "std", Max: number(most)}},
		}
		if phases[phase] == "" {
			panic("phase " + phase)
		}
		p.Confirmed = p.Phase == scaling.Deprovisioning
		p.Rooms[0].Used, _ = strconv.Atoi(used)
		if marks != "" {
			for mark := range strings.SplitSeq(marks, "+") {
				apply(&p, mark)
			}
		}
		w.Planes = append(w.Planes, p)
		if used != "" && used != "0" {
			w.Instances = append(w.Instances, scaling.Instance{
				Name: "t/" + name, UID: name, Type: "std", Units: number(used), Plane: name, Created: p.Created,
			})
		}
	}
	return w
}

var phases = map[string]scaling.Phase{
	"ready": scaling.Ready, "coming": scaling.Provisioning, "accepted": scaling.Accepted, "waiting": scaling.WaitingForAgent,
	"provisioned": scaling.Provisioned, "doubted": scaling.Deprovisioning, "cleanup": scaling.Cleanup, "failed": scaling.Failed,
}

func apply(p *scaling.Plane, mark string) {
	key, value, _ := strings.Cut(mark, "=")
	switch key {
	case "silent":
		p.Silent = true
	case "gone":
		p.Gone = true
	case "unlisted": // with an instance of that name
		p.Unlisted = append(p.Unlisted, value)
	case "unknown":
		p.Unknown = "its agent has not reported what is on it"
	case "asked": // and has not answered yet
		p.Confirmed = false
	case "discard":
		p.Discard = true
	case "says": // reports that number of used units
		p.Rooms[0].Used = number(value)
	case "left": // reports that number of remaining units
		p.Rooms[0].Reported, p.Rooms[0].Remaining, p.Rooms[0].Known = true, number(value), p.Rooms[0].Used
		p.Rooms[0].Used = p.Rooms[0].Max - p.Rooms[0].Remaining
	case "counted": // counts that number of units of known instances
		p.Rooms[0].Known = number(value)
	case "cordoned":
		p.Cordoned = true
	case "protected":
		p.Protected = true
	case "registered":
		p.Managed = false
	case "multi":
		p.MultiZone = true
	case "released":
		p.Released = true
	case "deleting":
		p.Deleting = true
	case "unreadable":
		p.Unreadable = "spec.region: 1 is not a string"
	case "is": // of another type only
		p.Rooms[0].Type = value
	case "also": // also of another type, with ten units
		p.Rooms = append(p.Rooms, scaling.Room{Type: value, Max: 10})
	case "age":
		p.Created = noon.Add(-span(value))
	case "since":
		p.Since = noon.Add(-span(value))
	case "empty":
		p.EmptySince = noon.Add(-span(value))
	case "booked": // by an instance of that name and one unit
		p.Bookings = append(p.Bookings, scaling.Booking{Instance: "t/" + value, UID: value, Type: "std", Units: 1})
	default:
		panic("mark " + mark)
	}
}

func span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// orders parses "x:2 y:1@a z:1!a=5m v:1*": a waiting instance of two units, one that is pinned to
// a, one that a refuses for another five minutes, one that is being deleted. The first is the
// oldest. "!a=0s,4" was refused when a had four remaining units; with ",vacant", when nothing else
// was on it. There may be several.
func (w *world) orders(text string) *world {
	for n, word := range strings.Fields(text) {
		name, rest, _ := strings.Cut(word, ":")
		i := scaling.Instance{Name: "t/" + name, UID: name, Type: "std", Created: noon.Add(time.Duration(n-20) * time.Minute)}
		rest, i.Deleting = strings.CutSuffix(rest, "*")
		rest, refusals, refused := strings.Cut(rest, "!")
		if refused {
			for refusal := range strings.SplitSeq(refusals, "!") {
				i.Refusals = append(i.Refusals, readRefusal(refusal))
			}
		}
		rest, i.Pin, _ = strings.Cut(rest, "@")
		rest, other, _ := strings.Cut(rest, "/")
		if other != "" {
			i.Type = other
		}
		i.Units = number(rest)
		w.Instances = append(w.Instances, i)
	}
	return w
}

func readRefusal(text string) scaling.Refusal {
	plane, what, _ := strings.Cut(text, "=")
	words := strings.Split(what, ",")
	r := scaling.Refusal{Plane: plane, Until: noon.Add(span(words[0]))}
	for _, word := range words[1:] {
		if r.Vacant = word == "vacant"; !r.Vacant {
			r.Remaining = number(word)
		}
	}
	return r
}

func (w *world) up(change func(*scaling.ScaleUp)) *world {
	change(&w.Region.Up)
	return w
}

func (w *world) down(change func(*scaling.ScaleDown)) *world {
	change(&w.Region.Down)
	return w
}

// brief returns a plan without its reasons: "place x a, create std, remove b".
func brief(p scaling.Plan) string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, strings.Join(strings.Fields(fmt.Sprint(s.Verb, " ", strings.TrimPrefix(s.Instance, "t/"), " ", s.DataPlane, " ", onlyCreate(s))), " "))
	}
	return strings.Join(out, ", ")
}

func onlyCreate(s scaling.Step) string {
	if s.Verb == scaling.Create {
		return s.Type
	}
	return ""
}

// growth returns the decision about std: "create BelowSlack".
func growth(p scaling.Plan) string {
	for _, t := range p.Types {
		if t.Name == "std" {
			return string(t.Decision.Action) + " " + string(t.Decision.Reason)
		}
	}
	return ""
}

// fates returns the decisions about data planes: "a keep NotEmpty, b remove NotNeeded".
func fates(p scaling.Plan) string {
	var out []string
	for _, r := range p.Planes {
		out = append(out, fmt.Sprint(r.Name, " ", r.Decision.Action, " ", r.Decision.Reason))
	}
	return strings.Join(out, ", ")
}

// places returns the decisions about instances: "x a, y NoCapacity".
func places(p scaling.Plan) string {
	var out []string
	for _, l := range p.Placements {
		where := l.DataPlane
		if where == "" {
			where = string(l.Decision.Reason)
		}
		out = append(out, strings.TrimPrefix(l.Instance, "t/")+" "+where)
	}
	return strings.Join(out, ", ")
}
