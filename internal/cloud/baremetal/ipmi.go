package baremetal

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	goipmi "github.com/bougou/go-ipmi"
)

const (
	// packetTimeout is the time to wait for a response before a packet is sent again; packets get
	// lost.
	packetTimeout = 1500 * time.Millisecond
	// packetRetries is the number of times that a packet is sent again. It is low because a BMC
	// that has answered one step of a login twice accepts no further step, so that the login must
	// start again.
	packetRetries = 1
	// maxLogins is the maximum number of logins within the BMC's request timeout.
	maxLogins = 3
)

// ipmiBMC is a BMC that is accessed with IPMI 2.0 over a network.
type ipmiBMC struct {
	host           host
	requestTimeout time.Duration
	client         *goipmi.Client
	dialer         *udpDialer
	// open reports whether there is a session, which must be closed.
	open bool
}

func newIPMIClient(h host, patience time.Duration) *ipmiBMC {
	return &ipmiBMC{host: h, requestTimeout: patience}
}

func (b *ipmiBMC) readHost(ctx context.Context, h host) (managedHost, error) {
	ctx, cancel := context.WithTimeout(ctx, b.requestTimeout)
	defer cancel()
	for n := 1; !b.open; n++ {
		err := b.translateError(ctx, b.openSession(ctx))
		var p bmcError
		if err != nil && (n == maxLogins || ctx.Err() != nil || !errors.As(err, &p) || !p.timedOut) {
			return nil, err
		}
	}
	status, err := b.client.GetChassisStatus(ctx)
	if err != nil {
		return nil, b.translateError(ctx, err)
	}
	return &chassis{host: h, bmc: b, on: status.PowerIsOn}, nil
}

// openSession logs in. The library keeps the session alive in a goroutine that ends with ctx: a
// visit ends long before a session expires.
func (b *ipmiBMC) openSession(ctx context.Context) error {
	client, err := goipmi.NewClient(b.host.address.host, 0, b.host.username, b.host.password)
	if err != nil {
		return err
	}
	level := goipmi.PrivilegeLevelOperator
	switch b.host.level {
	case "ADMINISTRATOR":
		level = goipmi.PrivilegeLevelAdministrator
	case "USER":
		level = goipmi.PrivilegeLevelUser
	case "CALLBACK":
		level = goipmi.PrivilegeLevelCallback
	}
	b.dialer = &udpDialer{ctx: ctx, address: b.host.address.host}
	b.client = client.WithTimeout(packetTimeout).WithRetry(packetRetries).WithMaxPrivilegeLevel(level).WithUDPProxy(b.dialer)
	if err := b.client.Connect(ctx); err != nil {
		b.dialer.closeConnection()
		return err
	}
	b.open = true
	return nil
}

func (b *ipmiBMC) closeSession(ctx context.Context) {
	if !b.open {
		return
	}
	defer b.dialer.closeConnection()
	if ctx.Err() != nil {
		return // the library would wait for a response that it is already waiting for
	}
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), logoutTimeout)
	defer cancel()
	_ = b.client.Close(parting) // the BMC ends a remaining session automatically
}

// udpDialer opens connections for the library, which supports neither IPv6 addresses nor a context
// for dialing, and does not close the connection if logging in or out fails.
type udpDialer struct {
	ctx     context.Context //nolint:containedctx // the library's interface has no context parameter
	address string
	conn    net.Conn
}

// Dial connects to the BMC and ignores the address that the library passes.
func (d *udpDialer) Dial(string, string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(d.ctx, "udp", d.address)
	if err == nil {
		d.conn = conn
	}
	return conn, err
}

func (d *udpDialer) closeConnection() {
	if d.conn != nil {
		_ = d.conn.Close() // the library may have closed it
	}
}

// chassis is a host as reported by IPMI.
type chassis struct {
	host
	bmc *ipmiBMC
	on  bool
}

func (c *chassis) powerState() power {
	if c.on {
		return poweredOn
	}
	return poweredOff
}

func (c *chassis) reportedState() string {
	if c.on {
		return "on"
	}
	return "off"
}

func (c *chassis) setPowerState(ctx context.Context, o powerAction) error {
	ctx, cancel := context.WithTimeout(ctx, c.bmc.requestTimeout)
	defer cancel()
	control := map[powerAction]goipmi.ChassisControl{
		turnOn:   goipmi.ChassisControlPowerUp,
		shutDown: goipmi.ChassisControlSoftShutdown,
		powerOff: goipmi.ChassisControlPowerDown,
	}[o]
	_, err := c.bmc.client.ChassisControl(ctx, control)
	return c.bmc.translateError(ctx, err)
}

// translateError is the only place that interprets IPMI's codes. It quotes nothing of the library's
// login errors: a BMC proves that it knows the password before hotspare does, and the errors
// contain that proof, which allows a dictionary attack.
func (b *ipmiBMC) translateError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var answer *goipmi.ResponseError
	if errors.As(err, &answer) {
		return b.translateCompletionCode(answer.CompletionCode())
	}
	var timeout net.Error
	switch said := err.Error(); {
	case strings.Contains(said, "authcode not equal"), strings.Contains(said, "integrity check not passed"):
		return refusedAccountError(b.host)
	case strings.Contains(said, "return status of rakp") && strings.Contains(strings.ToLower(said), "role"):
		return newBMCError(notAuthorized, b.host,
			"does not grant the account in %s the privilege level %s: grant it, or add ?privilegelevel= to bmc.address", b.host.where, b.privilegeLevel())
	case strings.Contains(said, "return status of rakp"):
		return refusedAccountError(b.host)
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout(), strings.Contains(said, "timed out"), strings.Contains(said, "deadline"):
		return timeoutError(b.host)
	case errors.As(err, &timeout):
		return unreachableError(b.host, timeout)
	case !b.open:
		return newBMCError(unavailable, b.host, "accepts no login with IPMI 2.0 and cipher suites 17 or 3")
	}
	return newBMCError(otherError, b.host, "answers with something other than IPMI")
}

func (b *ipmiBMC) privilegeLevel() string {
	if b.host.level == "" {
		return "OPERATOR"
	}
	return b.host.level
}

func (b *ipmiBMC) translateCompletionCode(code goipmi.CompletionCode) error {
	switch code {
	case goipmi.CompletionCodeCannotExecuteCommandSecurityRestrict, 0x80, 0x81, 0x82: // the latter are about the level of a session
		return newBMCError(notAuthorized, b.host, "denies the request of the account in %s (completion code %#02x): grant it the privilege level %s",
			b.host.where, uint8(code), b.privilegeLevel())
	case goipmi.CompletionCodeInvalidCommand, goipmi.CompletionCodeInvalidCommandForLUN, goipmi.CompletionCodeParameterOutOfRange,
		goipmi.CompletionCodeRequestDataFieldInvalid, goipmi.CompletionCodeCannotExecuteCommandSubFnDisabled:
		p := newBMCError(unsupported, b.host, "does not support the request (completion code %#02x)", uint8(code))
		p.err = errUnsupported
		return p
	case goipmi.CompletionCodeNodeBusy, goipmi.CompletionCodeProcessTimeout, goipmi.CompletionCodeOutOfSpace, goipmi.CompletionCodeCannotProvideResponse,
		goipmi.CompletionCodeCannotProvideResponseBMCInitialize, goipmi.CompletionCodeCannotProvideResponseFirmwareUpdate,
		goipmi.CompletionCodeCannotExecuteCommandNotSupported:
		return newBMCError(notReady, b.host, "cannot carry out the request now (completion code %#02x)", uint8(code))
	}
	return newBMCError(otherError, b.host, "returned an error (completion code %#02x)", uint8(code))
}
